// An everyday conversation of a TypeScript SDK with a server; `everyday.rs` says what it is given and has
// to print. `sdk` is `client` (@modelcontextprotocol/client) or `sdk` (@modelcontextprotocol/sdk, which
// came before it and knows handshakes only).
'use strict';

const fs = require('node:fs');
const { createRequire } = require('node:module');
const { setTimeout: sleep } = require('node:timers/promises');

const request = JSON.parse(process.argv[2]);
const installed = createRequire(`${request.clients}/`);

const LIST_CHANGED = 'notifications/tools/list_changed';

function sdk() {
    if (request.sdk === 'client') {
        const own = installed('@modelcontextprotocol/client');
        const { StdioClientTransport } = installed('@modelcontextprotocol/client/stdio');
        const options =
            request.era === 'stateless' ? { versionNegotiation: { mode: { pin: '2026-07-28' } } } : {};
        return {
            client: new own.Client({ name: 'test', version: '1' }, options),
            Http: own.StreamableHTTPClientTransport,
            Stdio: StdioClientTransport,
            hear: (client, told) => client.setNotificationHandler(LIST_CHANGED, told),
            call: (client, params, options) => client.callTool(params, options)
        };
    }
    const { Client } = installed('@modelcontextprotocol/sdk/client/index.js');
    const types = installed('@modelcontextprotocol/sdk/types.js');
    return {
        client: new Client({ name: 'test', version: '1' }),
        Http: installed('@modelcontextprotocol/sdk/client/streamableHttp.js').StreamableHTTPClientTransport,
        Stdio: installed('@modelcontextprotocol/sdk/client/stdio.js').StdioClientTransport,
        hear: (client, told) => client.setNotificationHandler(types.ToolListChangedNotificationSchema, told),
        call: (client, params, options) => client.callTool(params, undefined, options)
    };
}

async function main() {
    const { client, Http, Stdio, hear, call: callWith } = sdk();
    const { url, token, command, args } = request.server;
    const headers = { Authorization: `Bearer ${token}` };
    const transport = url
        ? new Http(new URL(url), { requestInit: { headers } })
        : new Stdio({ command, args, stderr: 'inherit' });
    // The older package tells the transport alone which revision it is; that of HTTP keeps it.
    transport.setProtocolVersion ??= version => {
        transport.protocolVersion = version;
    };
    let told = 0;
    hear(client, () => {
        told += 1;
    });
    await client.connect(transport);

    const names = async () => (await client.listTools()).tools.map(tool => tool.name);
    const call = async ({ name, arguments: given }, options) => {
        try {
            return { result: await callWith(client, { name, arguments: given }, options) };
        } catch (error) {
            if (error.code === undefined) throw error;
            return { error: { code: error.code, message: error.message } };
        }
    };

    const version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion;
    const seen = { protocol_version: version, replies: [], progress: [] };
    for (;;) {
        seen.tools = await names();
        if (seen.tools.includes(request.awaited)) break;
        await sleep(50);
    }
    for (const one of request.calls) seen.replies.push(await call(one));

    seen.slow = await call(request.slow, { onprogress: told => seen.progress.push(told) });

    const stop = new AbortController();
    const running = callWith(client, request.endless, { signal: stop.signal }).then(
        () => false,
        () => true
    );
    while (!fs.existsSync(request.begun)) await sleep(20);
    stop.abort(new Error('the person changed their mind'));
    seen.cancelled = await running;

    const listening =
        request.era === 'stateless' ? await client.listen({ toolsListChanged: true }) : undefined;
    fs.writeFileSync(request.file, request.text);
    for (;;) {
        const heard = told;
        seen.tools_after = await names();
        if (seen.tools_after.includes(request.late)) break;
        // Every look after the first is one that the server has asked for.
        while (told === heard) await sleep(20);
    }
    await listening?.close();
    seen.after = await call(request.calls[0]);
    await client.close();
    return seen;
}

const late = setTimeout(() => {
    console.error('this takes too long');
    process.exit(3);
}, 50_000);
main().then(
    seen => {
        clearTimeout(late);
        // Connections that are kept for a next request would keep the process.
        process.stdout.write(JSON.stringify(seen) + '\n', () => process.exit(0));
    },
    error => {
        console.error(error);
        process.exit(2);
    }
);
