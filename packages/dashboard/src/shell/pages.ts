import type { ComponentType } from 'react';
import { onDemand } from '../parts/on-demand.js';

type Content = ComponentType<{ params: Readonly<Record<string, string>> }>;
type Load = () => Promise<{ default: Content }>;

export const groups = ['Agents', 'Cost', 'Data', 'System'] as const;

interface PageEntry {
  /** Below `/#`; `:id` is passed to the page in `params`. */
  path: string;
  Content: Content;
  /** Its navigation entry; absent for pages reached from other pages. The key comes after `g`. */
  navigation?: { group: (typeof groups)[number]; title: string; key: string };
}

const page = (path: string, load: Load): PageEntry => ({ path, Content: onDemand(load) });

/** A page of the navigation, as `Group: Title (key)`. */
function top(path: string, text: string, load: Load): PageEntry {
  const [, group, title, key] = /^(\w+): (.+) \((.)\)$/.exec(text)!;
  const navigation = { group: group as (typeof groups)[number], title: title!, key: key! };
  return { ...page(path, load), navigation };
}

/** All pages, in the order of the navigation. */
export const pages: readonly PageEntry[] = [
  top('/', 'Agents: Fleet (f)', () => import('../pages/fleet/index.js')),
  page('/agents/:id', () => import('../pages/agent/index.js')),
  top('/pipelines', 'Agents: Pipelines (p)', () => import('../pages/pipelines/index.js')),
  page('/pipelines/:id', () => import('../pages/pipelines/index.js')),
  top('/plans', 'Agents: Plans (n)', () => import('../pages/plans/index.js')),
  page('/plans/:id', () => import('../pages/plans/index.js')),
  top('/branches', 'Agents: Branches (b)', () => import('../pages/branches/index.js')),
  top('/inbox', 'Agents: Inbox (i)', () => import('../pages/inbox/index.js')),
  top('/backends', 'Cost: Backends & usage (u)', () => import('../pages/backends/index.js')),
  top('/spend', 'Cost: Spend & savings (s)', () => import('../pages/spend/index.js')),
  top('/queues', 'Data: Queues (q)', () => import('../pages/queues/index.js')),
  page('/queues/:id', () => import('../pages/queues/index.js')),
  page('/tasks/:id', () => import('../pages/tasks/index.js')),
  page('/flows/:id', () => import('../pages/flows/index.js')),
  top('/dead-letters', 'Data: Dead letters (l)', () => import('../pages/dead-letters/index.js')),
  page('/dead-letters/:id', () => import('../pages/dead-letters/index.js')),
  top('/database', 'Data: Database (d)', () => import('../pages/database/index.js')),
  page('/database/:id', () => import('../pages/database/index.js')),
  top('/metrics', 'System: Metrics (m)', () => import('../pages/metrics/index.js')),
  top('/settings', 'System: Settings (,)', () => import('../pages/settings/index.js')),
  top('/help', 'System: Documentation (h)', () => import('../pages/help/index.js')),
  // Every part in every state, for those who change them.
  ...(import.meta.env.DEV ? [page('/gallery', () => import('../pages/gallery/index.js'))] : []),
];
