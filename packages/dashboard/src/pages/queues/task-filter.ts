import type { Task, TaskFilter } from '../../queue/api.js';

type Status = Task['status'];

export const statuses: Readonly<Record<Status, string>> = {
  PENDING: 'Pending',
  IN_FLIGHT: 'In flight',
  SUCCEEDED: 'Succeeded',
  DEAD: 'Dead',
};

export type Order = 'newest' | 'oldest' | 'next';

const fields = ['handler_ref', 'group_key', 'from', 'to'] as const;
export type FilterField = (typeof fields)[number];

/** The filter and the order in the parameters of the address. */
export function taskFilterIn(text: string): { filter: TaskFilter; status: Status; order: Order } {
  const params = new URLSearchParams(text);
  const named = params.get('status') ?? '';
  const status = Object.hasOwn(statuses, named) ? (named as Status) : 'PENDING';
  const found = fields.flatMap((name) => {
    const value = params.get(name);
    return value ? [[name, value] as const] : [];
  });
  const order = params.get('order');
  return {
    filter: { status: [status], ...Object.fromEntries(found) },
    status,
    // Only pending tasks have a next attempt to sort by.
    order: order === 'oldest' || (order === 'next' && status === 'PENDING') ? order : 'newest',
  };
}
