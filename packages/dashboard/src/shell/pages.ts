import { lazy, type ComponentType, type LazyExoticComponent } from 'react';

interface PageEntry {
  /** Below `/#`; `:id` is passed to the page in `params`. */
  path: string;
  Content: LazyExoticComponent<ComponentType<{ params: Readonly<Record<string, string>> }>>;
  /** Its navigation entry; absent for pages reached from other pages. */
  navigation?: {
    title: string;
    group: 'Agents' | 'Cost' | 'Data' | 'System';
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

/** All pages, in the order of the navigation. */
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
  page('/plans', () => import('../pages/plans/index.js'), {
    title: 'Plans',
    group: 'Agents',
    key: 'n',
  }),
  page('/plans/:id', () => import('../pages/plans/index.js')),
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
    group: 'Cost',
    key: 'u',
  }),
  page('/spend', () => import('../pages/spend/index.js'), {
    title: 'Spend & savings',
    group: 'Cost',
    key: 's',
  }),
  page('/queues', () => import('../pages/queues/index.js'), {
    title: 'Queues',
    group: 'Data',
    key: 'q',
  }),
  page('/queues/:id', () => import('../pages/queues/index.js')),
  page('/tasks/:id', () => import('../pages/tasks/index.js')),
  page('/flows/:id', () => import('../pages/flows/index.js')),
  page('/dead-letters', () => import('../pages/dead-letters/index.js'), {
    title: 'Dead letters',
    group: 'Data',
    key: 'l',
  }),
  page('/dead-letters/:id', () => import('../pages/dead-letters/index.js')),
  page('/database', () => import('../pages/database/index.js'), {
    title: 'Database',
    group: 'Data',
    key: 'd',
  }),
  page('/database/:id', () => import('../pages/database/index.js')),
  page('/metrics', () => import('../pages/metrics/index.js'), {
    title: 'Metrics',
    group: 'System',
    key: 'm',
  }),
  page('/settings', () => import('../pages/settings/index.js'), {
    title: 'Settings',
    group: 'System',
    key: ',',
  }),
  page('/help', () => import('../pages/help/index.js'), {
    title: 'Documentation',
    group: 'System',
    key: 'h',
  }),
  // Every part in every state, for those who change them.
  ...(import.meta.env.DEV ? [page('/gallery', () => import('../pages/gallery/index.js'))] : []),
];
