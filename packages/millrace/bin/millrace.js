#!/usr/bin/env node
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`millrace: Node 20.19 or later is required; this is ${process.version}.`);
  process.exitCode = 2;
} else {
  const { main } = await import('../dist/ctl/main.js');
  await main(process.argv.slice(2));
}
