import { createRequire } from 'node:module';
import { expect, test, vi } from 'vitest';

/** Not in the types that this package is built with. */
const { WebAssembly } = globalThis as unknown as {
  WebAssembly: { Module: new (bytes: Uint8Array) => object };
};

test('makes the parser of answers once, and needs no network', async () => {
  // Another test of this process may have made one already: begin with a library that has none.
  const { cache } = createRequire(import.meta.url);
  for (const file of Object.keys(cache)) if (/undici.lib/.test(file)) delete cache[file];
  vi.resetModules();
  const { prepareOutbound } = await import('./prepare.js');
  const compile = vi.spyOn(WebAssembly, 'Module');
  await prepareOutbound();
  expect(compile).toHaveBeenCalledTimes(1);
  await prepareOutbound();
  expect(compile).toHaveBeenCalledTimes(1);
  compile.mockRestore();
});
