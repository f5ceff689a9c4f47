import { lazy, type ComponentType, type LazyExoticComponent } from 'react';

interface PageEntry {
  /** Below `/#`; `:id` is handed to the page as `params`. */
  path: string;
  Content: LazyExoticComponent<ComponentType<{ params: Readonly<Record<string, string>> }>>;
  /** Where it stands in the navigation; left out for pages that others lead to. */
  navigation?: {
    title: string;
    group: 'Agents' | 'Accounts' | 'Stores' | 'Millrace';
    /** The key after `g`. */
    key: string;
  };
}

type Load = () => Promise<{
  default: ComponentType<{ params: Readonly<Record<string, string>> }>;
}>;

function page(path: string, load: Load, navigation?: PageEntry['navigation']): PageEntry {
  return { path, Content: lazy(load), ...(navigation && { navigation }) };
}

/** Every page, in the order of the navigation. */
export const pages: readonly PageEntry[] = [
  page('/', () => import('../pages/fleet/index.js'), {
    title: 'Fleet',
    group: 'Agents',
    key: 'f',
  }),
  page('/agents/:id', () => import('../pages/agent/index.js')),
  page('/pipelines', () => import('../pages/pipelines/index.js'), {
    title: 'Pipelines',
    group: 'Agents',
    key: 'p',
  }),
  page('/pipelines/:id', () => import('../pages/pipelines/index.js')),
  page('/branches', () => import('../pages/branches/index.js'), {
    title: 'Branches',
    group: 'Agents',
    key: 'b',
  }),
  page('/inbox', () => import('../pages/inbox/index.js'), {
    title: 'Inbox',
    group: 'Agents',
    key: 'i',
  }),
  page('/backends', () => import('../pages/backends/index.js'), {
    title: 'Backends & usage',
    group: 'Accounts',
    key: 'u',
  }),
  page('/spend', () => import('../pages/spend/index.js'), {
    title: 'Spend & savings',
    group: 'Accounts',
    key: 's',
  }),
  page('/metrics', () => import('../pages/metrics/index.js'), {
    title: 'Metrics',
    group: 'Accounts',
    key: 'm',
  }),
  page('/queues', () => import('../pages/queues/index.js'), {
    title: 'Queues',
    group: 'Stores',
    key: 'q',
  }),
  page('/queues/:id', () => import('../pages/queues/index.js')),
  page('/dead-letters', () => import('../pages/dead-letters/index.js'), {
    title: 'Dead letters',
    group: 'Stores',
    key: 'l',
  }),
  page('/dead-letters/:id', () => import('../pages/dead-letters/index.js')),
  page('/database', () => import('../pages/database/index.js'), {
    title: 'Database',
    group: 'Stores',
    key: 'd',
  }),
  page('/database/:id', () => import('../pages/database/index.js')),
  page('/settings', () => import('../pages/settings/index.js'), {
    title: 'Settings',
    group: 'Millrace',
    key: ',',
  }),
];
