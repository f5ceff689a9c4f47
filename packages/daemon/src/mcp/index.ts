/**
 * The daemon's tools for agents. The daemon serves them itself at `/mcp`; `ctl mcp` serves the
 * same tools over stdio and calls the daemon's REST API for each:
 *
 *     await runMcpStdio({
 *       version, log,
 *       callApi: async ({ method, path, body }) => {
 *         const answer = await fetch(new URL(path, daemonUrl), {
 *           method,
 *           headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
 *           ...(body && { body: JSON.stringify(body) }),
 *         });
 *         return { status: answer.status, body: await answer.json() };
 *       },
 *     });
 *
 * It resolves when the client closes its end. `callApi` throws a `Refusal` of the kit when the
 * daemon cannot be reached: the client is then told so, and may try again.
 */
export { runMcpStdio, type ApiAnswer, type ApiRequest, type McpStdioOptions } from './stdio.js';
