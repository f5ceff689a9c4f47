import { fileURLToPath } from 'node:url';

/**
 * A fake agent that behaves like the real command lines, for tests and for `ctl demo`: run it with
 * node. See script.ts for the commands that its prompts may contain.
 */
export const fakeAgentProgram = fileURLToPath(new URL('./main.js', import.meta.url));
