/**
 * Which test runs the commands of which page. Those of the repository itself (`npm`, `npx`, `node`)
 * are run by test/docs-repository.test.ts, whichever page they stand on.
 */
export const pagesOfServers = [
  'README.md',
  'docs/quickstart.md',
  'docs/operations.md',
  'docs/money.md',
  'docs/agents.md',
  'docs/security.md',
];

export const pagesOfQueue = ['docs/queue.md', 'docs/scale-out.md'];

export const pagesOfDatabase = ['docs/database.md'];

/** They have commands of the repository alone. */
export const pagesOfRepository = [
  'CONTRIBUTING.md',
  'docs/performance.md',
  'docs/reliability.md',
  'docs/explanation/durability.md',
  'examples/embedded/README.md',
];

/** What is run once, whatever page it stands on, and needs no server. */
export function isOfRepository(command: string): boolean {
  return command !== 'npm start' && /^(?:npm|npx|node) |^bin\/ctl demo$/.test(command);
}
