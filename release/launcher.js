#!/usr/bin/env node
// Runs the program of this platform, which stands in a package of its own.
"use strict";
const { spawn } = require("node:child_process");
const name = `pacer-gateway-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/${process.platform === "win32" ? "pacer.exe" : "pacer"}`);
} catch {
  console.error(`pacer: the package ${name} is not installed; install pacer-gateway again without --omit=optional, on Linux, macOS or Windows (x64 or arm64)`);
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (err) => {
  console.error(`pacer: ${err.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    return;
  }
  process.exit(code);
});
