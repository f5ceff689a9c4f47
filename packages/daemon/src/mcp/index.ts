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
 * It resolves when the client closes the connection. `callApi` throws a `Refusal` of the kit when
 * the daemon cannot be reached: the client gets it as the tool's error, and may retry.
 */
export { runMcpStdio, type ApiAnswer, type ApiRequest, type McpStdioOptions } from './stdio.js';
