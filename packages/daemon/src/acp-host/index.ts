import { fileURLToPath } from 'node:url';

/** The program that runs one agent over the Agent Client Protocol: run it with node. */
export const acpHostProgram = fileURLToPath(new URL('./acp-main.js', import.meta.url));
