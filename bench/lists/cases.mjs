/** The listings that are measured: every filter of tasks and of dead letters, and deep pages. */
export const queue = 'mail';
const limit = 50;
const maxBytes = 2 ** 22;

/** Tasks were created from `from` to `to`, and died in the same time. */
export function casesOf({ from, to }) {
  const middle = Math.floor((from + to) / 2);
  const after = { at: middle, id: '01KE6S00000000000000000000' };
  const deep = { deadAt: middle, id: after.id };
  const task = (name, filter, more = {}) => ({
    name,
    query: { queue, order: 'newest', limit, filter, ...more },
  });
  const dead = (name, filter, more = {}) => ({
    name: `dead letters: ${name}`,
    isDead: true,
    query: { queue, order: 'newest_first', limit, maxBytes, filter, ...more },
  });
  const in_ = (...statuses) => ({ statuses });
  const window = { createdFrom: middle, createdBefore: middle + 1_000 };
  return [
    task('newest', {}),
    task('oldest', {}, { order: 'oldest' }),
    task('deep page', {}, { after }),
    task('created in a second', window),
    ...['PENDING', 'IN_FLIGHT', 'SUCCEEDED', 'DEAD'].map((status) => task(status, in_(status))),
    task('PENDING, oldest', in_('PENDING'), { order: 'oldest' }),
    task('PENDING, deep page', in_('PENDING'), { after }),
    task('PENDING, next', in_('PENDING'), { order: 'next' }),
    task('PENDING, rare handler', { ...in_('PENDING'), handlerRef: 'rare' }),
    task('PENDING, next, no match', { ...in_('PENDING'), groupKey: 'none' }, { order: 'next' }),
    task('DEAD or PENDING', in_('DEAD', 'PENDING')),
    task('DEAD, no match', { ...in_('DEAD'), handlerRef: 'none' }),
    task('common handler', { handlerRef: 'common' }),
    task('rare handler', { handlerRef: 'rare' }),
    task('handler, no match', { handlerRef: 'none' }),
    task('group', { groupKey: 'group-7' }),
    task('group, no match', { groupKey: 'none' }),
    dead('newest', {}),
    dead('oldest', {}, { order: 'oldest_first' }),
    dead('deep page', {}, { after: deep }),
    dead('common error', { errorType: 'timeout' }),
    dead('rare error', { errorType: 'refused' }),
    dead('rare handler', { handlerRef: 'rare' }),
    dead('rare status', { httpStatus: 418 }),
    dead('status, no match', { httpStatus: 599 }),
    dead('error and handler, no match', { errorType: 'timeout', handlerRef: 'none' }),
    dead('died in a second', { diedFrom: middle, diedBefore: middle + 1_000 }),
  ];
}

/** How many tasks the page has. */
export async function readPage(store, { isDead, query }) {
  const page = await (isDead ? store.deadTasks(query) : store.listTasks(query));
  return page.tasks.length;
}

/** What kind of task the n-th is; the same on both stores. */
export const isRare = (n) => n % 10_000 === 0;
export const groups = 1_000;
