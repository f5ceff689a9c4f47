import { fileURLToPath } from 'node:url';

/** The MCP server through which a headless claude asks for permissions: run it with node. */
export const permissionToolProgram = fileURLToPath(
  new URL('./permission-main.js', import.meta.url),
);

/** Not `millrace`, under which people configure the daemon's own tools. */
export const permissionServerName = 'millrace_permissions';
export const permissionToolName = 'request_permission';

/**
 * Flags that let claude ask. Each is one word, because `--mcp-config` takes all words that follow.
 */
export function permissionFlags(program: string, sessionDirectory: string): string[] {
  const server = {
    type: 'stdio',
    command: process.execPath,
    args: [program, sessionDirectory],
    // Claude waits for it before the first turn; otherwise an early request would be denied.
    alwaysLoad: true,
  };
  const config = { mcpServers: { [permissionServerName]: server } };
  return [
    `--mcp-config=${JSON.stringify(config)}`,
    `--permission-prompt-tool=mcp__${permissionServerName}__${permissionToolName}`,
  ];
}
