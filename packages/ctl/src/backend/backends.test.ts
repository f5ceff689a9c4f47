import { expect, test } from 'vitest';
import { contractExample } from '../daemon/contract-examples.test-support.js';
import { painter, plain } from '../render/paint.js';
import { registryScreen } from './backends.js';

const registry = contractExample('Registry');

test.for([80, 140])('the table and the thinking mode at %i columns', (columns) => {
  expect(registryScreen(registry, { columns, paint: plain })).toBe(
    `
ID      INSTALLED  TIER          DEFAULT  ENABLED  LIMITED
claude  yes        subscription  yes      yes      no
gemini  yes        free          no       yes      until 2026-01-15 09:45Z
local   no         local         no       yes      no
Thinking mode: free_plus_local
`.slice(1),
  );
});

test('backends that speak ACP are named with their way to do it', () => {
  const [claude, ...others] = registry.backends;
  const acp = { via: 'adapter' as const, command: ['/bin/claude-agent-acp'] };
  const backends = [{ ...claude!, acp }, ...others];
  const screen = registryScreen({ ...registry, backends }, { columns: 80, paint: plain });
  expect(screen).toContain('\nDriver acp: claude (adapter)\n');
});

test('where none is installed it says what to do', () => {
  const bare = { ...registry, backends: registry.backends.slice(-1) };
  expect(registryScreen(bare, { columns: 80, paint: plain })).toContain(
    'No backend is installed on this machine. Install one, then run `ctl backend rescan`.\n',
  );
});

test('every known row fits 80 columns, limited or not', () => {
  const row = {
    ...registry.backends[1]!,
    id: 'cursor-agent',
    tier: 'unclassified' as const,
    limited_until: '2026-01-15T09:45:00.000Z',
  };
  const screen = registryScreen({ ...registry, backends: [row] }, { columns: 80, paint: plain });
  expect(screen).toContain('cursor-agent  yes        unclassified  no       yes      until');
  expect(Math.max(...screen.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
});

test('colours are added without moving anything', () => {
  const coloured = registryScreen(registry, { columns: 80, paint: painter });
  // oxlint-disable-next-line no-control-regex
  const bare = coloured.replaceAll(/\u001B\[\d+m/g, '');
  expect(coloured).not.toBe(bare);
  expect(bare).toBe(registryScreen(registry, { columns: 80, paint: plain }));
});
