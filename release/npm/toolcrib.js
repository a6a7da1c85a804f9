#!/usr/bin/env node
// Starts the program of the package for this machine, which npm has installed beside this one.
"use strict";
const fs = require("fs");
const path = require("path");
const { spawn } = require("child_process");

const packages = {
  "linux x64": "@toolcrib/linux-x64",
  "linux arm64": "@toolcrib/linux-arm64",
};

function fail(text) {
  process.stderr.write(`toolcrib: ${text}\n`);
  process.exit(2);
}

function program() {
  const name = packages[`${process.platform} ${process.arch}`];
  if (!name) {
    fail(
      `there is no program for ${process.platform} ${process.arch}. It runs on Linux: on other systems use Docker, ` +
        "docker run --rm -i ghcr.io/toolcrib/toolcrib mcp",
    );
  }
  const report = process.report && process.report.getReport();
  if (report && report.header && !report.header.glibcVersionRuntime) {
    fail("this system has no glibc (Alpine has musl): use Docker, docker run --rm -i ghcr.io/toolcrib/toolcrib mcp");
  }
  try {
    return path.join(path.dirname(require.resolve(`${name}/package.json`)), "bin", "toolcrib");
  } catch {
    fail(`the package ${name} is not installed: install without --omit=optional`);
  }
}

const file = program();
const args = process.argv.slice(2);
try {
  fs.accessSync(file, fs.constants.X_OK);
} catch (error) {
  fail(`${file} cannot be run: ${error.message}`);
}
// Newer versions of Node.js become the program, so that signals and pipes are its own.
if (typeof process.execve === "function") {
  process.removeAllListeners("warning");
  process.on("warning", () => {});
  try {
    process.execve(file, ["toolcrib", ...args], process.env);
  } catch (error) {
    fail(`${file} cannot be run: ${error.message}`);
  }
}
const child = spawn(file, args, { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => fail(error.message));
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code === null ? 1 : code);
  }
});
