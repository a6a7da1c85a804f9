// One conversation of the TypeScript SDK with a server on standard input and output:
// node typescript_client.mjs MODULES COMMAND ARGUMENT… prints the answer of the calculator.
import { createRequire } from "node:module";
import path from "node:path";

const [modules, command, ...args] = process.argv.slice(2);
const installed = createRequire(path.join(path.resolve(modules), "index.js"));
const { Client } = installed("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = installed("@modelcontextprotocol/sdk/client/stdio.js");
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
const client = new Client({ name: "check", version: "1" });
await client.connect(transport);
const answer = await client.callTool({ name: "calculator", arguments: { expression: "6 * 7" } });
console.log(answer.content[0].text);
await client.close();
