import { fileURLToPath } from 'node:url';

/**
 * A made-up agent that behaves as the real command lines do, for tests and for `ctl demo`: run it
 * with node. See script.ts for what its prompts may ask of it.
 */
export const fakeAgentProgram = fileURLToPath(new URL('./main.js', import.meta.url));
