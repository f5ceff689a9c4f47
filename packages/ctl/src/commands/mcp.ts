import type { CtlCommand } from '../base/command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';

export function build(mcp: CtlCommand, tools: Tools): void {
  mcp.description(
    'Serve the daemon to agents with the Model Context Protocol over stdin and stdout, ' +
      'until the client closes them. While the daemon is not running, its tools return an ' +
      'error.',
  );
  withDaemon(mcp)
    .example('ctl mcp', 'as the command of an MCP server in the settings of an agent')
    .example('ctl mcp --url http://10.0.0.5:8765', 'a daemon on another machine')
    .exitCode(0, 'the client closed the connection')
    .action(async (flags: DaemonFlags) => {
      const { serveMcp } = await import('../mcp/stdio.js');
      await serveMcp(flags, tools);
    });
}
