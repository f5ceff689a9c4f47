import { expect, test, vi } from 'vitest';
import { prepareOutbound } from './prepare.js';

/** Not in the types that this package is built with. */
const { WebAssembly } = globalThis as unknown as {
  WebAssembly: { Module: new (bytes: Uint8Array) => object };
};

test('makes the parser of answers once, and needs no network', async () => {
  const compile = vi.spyOn(WebAssembly, 'Module');
  await prepareOutbound();
  const made = compile.mock.calls.length;
  // Another test of this process may have made it already.
  expect(made).toBeLessThanOrEqual(1);
  await prepareOutbound();
  expect(compile).toHaveBeenCalledTimes(made);
  compile.mockRestore();
});
