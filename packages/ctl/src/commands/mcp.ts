import type { CtlCommand } from '../command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../tools.js';

export function build(mcp: CtlCommand, tools: Tools): void {
  mcp.description(
    'Serves the daemon to agents by the Model Context Protocol over stdin and stdout, until the ' +
      'client closes them. The daemon must run; its tools answer with an error while it does not.',
  );
  withDaemon(mcp)
    .example('ctl mcp', 'as the command of an MCP server in the settings of an agent')
    .example('ctl mcp --url http://10.0.0.5:8765', 'for a daemon elsewhere')
    .exitCode(0, 'the client has closed its end')
    .action(async (flags: DaemonFlags) => {
      const { serveMcp } = await import('../mcp/stdio.js');
      await serveMcp(flags, tools);
    });
}
