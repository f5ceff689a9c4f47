import type { TopCommand } from '../base/groups.js';
import { daemonServer } from '../daemon/server.js';

export const top: Readonly<Record<string, TopCommand>> = {
  workspace: {
    server: daemonServer,
    description: 'Show the branches of the agents compared with their base, and their CI results.',
    examples: [
      ['ctl workspace branches', 'every branch of an agent'],
      ['ctl workspace branches --refresh', 'read them again'],
    ],
    commands: {
      branches: {
        summary: 'Show the branches of the agents with their CI status',
        description:
          'Show for each agent on a branch how many commits it is ahead of and behind its ' +
          'base, whether it is merged, and the CI result of its head commit. The daemon reads ' +
          'them every 60 seconds with git and gh, and fetches nothing. Unknown values are ' +
          'shown as -.',
        options: [['--refresh', 'Read the branches again before answering']],
        examples: [
          ['ctl workspace branches', 'as last read'],
          ['ctl workspace branches --refresh', 'as they are now'],
          ['ctl workspace branches --json', 'the response of the REST API'],
        ],
        isView: true,
        run: async () => (await import('../workspace/branches.js')).showBranches,
      },
    },
  },
};
