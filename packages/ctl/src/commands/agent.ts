import type { TopCommand } from '../base/groups.js';
import { commands } from '../agent/commands.js';
import { daemonServer } from '../daemon/server.js';

export const top: Readonly<Record<string, TopCommand>> = {
  agent: {
    server: daemonServer,
    description:
      'Start coding agents, follow them and send them work. Name an agent by its name, its ' +
      'id or an id prefix. With --json, commands print the response of the REST API.',
    examples: [
      ['ctl agent spawn "Fix the failing upload test"', 'start one here'],
      ['ctl agent list', 'their status'],
      ['ctl agent explain docs', 'why one is not working'],
      ['ctl agent questions', 'what you have to decide'],
      ['ctl agent submit "Update the docs" --repo .', 'queue work'],
    ],
    commands: commands,
  },
};
