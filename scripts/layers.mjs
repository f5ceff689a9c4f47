/**
 * Folders of a package from the lowest layer up: a folder imports from its own and lower layers.
 * Folders under `apart` never import one another.
 */
export const layers = {
  'packages/queue/src': {
    order: [['core'], ['storage'], ['operations', 'delivery', 'background'], ['server']],
  },
  'packages/queue/src/storage': {
    order: [['port'], ['transfer'], ['embedded', 'postgres']],
    apart: ['embedded', 'postgres'],
  },
  'packages/daemon/src': {
    order: [
      ['core'],
      [
        'storage',
        'registry',
        'transcripts',
        'fake-agent',
        'questions',
        'acp-host',
        'permission-tool',
      ],
      ['think', 'usage', 'spend', 'events', 'sessions', 'git'],
      ['savings', 'insights', 'notify', 'proxy', 'mcp', 'dashboard'],
      ['branches', 'guard', 'metrics', 'queue-callback', 'workbench'],
      ['plans'],
      ['pipelines'],
      ['operations'],
      ['server'],
    ],
  },
  'packages/wire/src': {
    order: [['base'], ['http1', 'http2'], ['grpc', 'grpc-client']],
    apart: ['http1', 'http2'],
  },
  'packages/engine/src': {
    order: [
      ['value'],
      ['format'],
      ['storage'],
      ['core'],
      ['query'],
      ['write'],
      ['watch'],
      ['maintain'],
      ['api'],
    ],
  },
  'packages/engine/src/storage': { order: [['file'], ['overlay'], ['log']] },
  'packages/db/src': { order: [['codec'], ['client'], ['server']] },
};

/** The order of a package as ARCHITECTURE.md shows it. */
export function shownOrder(folder) {
  return layers[folder].order
    .map((names) => (names.length > 1 ? `{ ${names.join(', ')} }` : names[0]))
    .join(' <- ');
}
