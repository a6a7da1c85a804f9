// Faults of aimock, and what `toolcrib run` makes of them. `mod.rs` says what this file is given.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const request = JSON.parse(process.argv[2]);
const aimock = join(request.packages, 'node_modules/@copilotkit/aimock/dist/index.js');
const { LLMock } = await import(pathToFileURL(aimock));
const notes = join(request.folder, 'notes.txt');

const call = { toolCalls: [{ name: 'note', arguments: { text: 'Something.' }, id: 'call_1' }] };
const answer = { content: 'It is noted, and that is all.' };

const error = (status, type, message, retryAfter) => ({ error: { message, type }, status, retryAfter });
const text = (content) => ({ type: 'text', text: content });
const other = { name: 'note', arguments: { text: 'Something else.' }, id: 'call_2' };

/**
 * The first reply is `first`, with `options`; if it has a fault, the next one is the call without. In the end there have been so
 * many `requests`, the call has run so many times (`notes`, once), and the program has ended with `code` (0).
 */
const cases = [
  { name: 'no fault', requests: 2 },
  { name: 'reasoning before the call', first: { ...call, reasoning: 'It is to be noted.' }, requests: 2 },
  { name: 'a call before its text', first: { blocks: [{ type: 'toolCall', ...call.toolCalls[0] }, text('Noting.')] }, requests: 2 },
  { name: 'two calls', first: { toolCalls: [...call.toolCalls, other] }, requests: 2, notes: 2 },
  { name: 'pieces of one character', options: { chunkSize: 1 }, requests: 2 },
  { name: 'a rate limit', first: error(429, 'rate_limit_error', 'Slower.', 1), requests: 3 },
  { name: 'an error of the server', first: error(500, 'server_error', 'Oops.'), requests: 3 },
  { name: 'an overloaded server', first: error(529, 'overloaded_error', 'Later.'), requests: 3 },
  { name: 'a wrong key', first: error(401, 'authentication_error', 'Who are you?'), requests: 1, notes: 0, code: 1 },
  { name: 'a stream cut after a piece', options: { truncateAfterChunks: 1 }, requests: 3 },
  { name: 'a stream cut after three pieces', options: { truncateAfterChunks: 3, chunkSize: 4 }, requests: 3 },
  { name: 'a connection that breaks', options: { disconnectAfterMs: 60, latency: 25, chunkSize: 2 }, requests: 3 },
  { name: 'a dropped request', options: { chaos: { dropRate: 1 } }, requests: 3 },
  { name: 'a malformed answer', options: { chaos: { malformedRate: 1 } }, requests: 3 },
  { name: 'a closed connection', options: { chaos: { disconnectRate: 1 } }, requests: 3 },
  { name: 'a limit without an error of the script', options: { chaos: { rateLimitRate: 1 } }, requests: 3 },
];

function run() {
  return new Promise((resolve, reject) => {
    const options = { cwd: request.folder, stdio: ['ignore', 'pipe', 'pipe'], timeout: 30_000 };
    const child = spawn(request.program, ['run', 'Note something.'], options);
    const said = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr']) {
      child[stream].setEncoding('utf8').on('data', (text) => { said[stream] += text; });
    }
    child.on('error', reject).on('close', (code) => resolve({ code, ...said }));
  });
}

/** The fixtures, of which the first that matches is taken. */
function script({ first = call, options = {} }) {
  const isFault = first.error || options.truncateAfterChunks || options.disconnectAfterMs || options.chaos;
  const opening = { userMessage: 'Note something.', hasToolResult: false };
  return [
    { match: { hasToolResult: true }, response: answer },
    { match: { ...opening, sequenceIndex: 0 }, response: first, ...options },
    ...(isFault ? [{ match: opening, response: call }] : []),
  ];
}

for (const one of cases) {
  const server = await LLMock.create({ strict: true, latency: 1 });
  try {
    server.addFixturesFromJSON(script(one));
    const { config } = request;
    config.providers.upstream.base_url = `${server.url}/v1`;
    writeFileSync(join(request.folder, 'config.yml'), JSON.stringify(config));
    rmSync(notes, { force: true });
    const { code, stdout, stderr } = await run();
    const seen = `${one.name}: ${stdout}\n${stderr}`;
    assert.equal(code, one.code ?? 0, seen);
    assert.equal(stdout, code ? '' : `${answer.content}\n`, seen);
    assert.ok(!code || stderr.includes(one.first.error.message), seen);
    const written = existsSync(notes) ? readFileSync(notes, 'utf8').trimEnd().split('\n') : [];
    assert.equal(written.length, one.notes ?? 1, seen);
    assert.equal(server.getRequests().length, one.requests, seen);
    console.log(`${one.name}: ${one.requests} requests`);
  } finally {
    await server.stop();
  }
}
process.exit(0);
