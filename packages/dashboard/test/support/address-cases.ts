import type { Locator } from 'playwright-core';
import type { WatchedPage } from '../browser.js';

type Page = WatchedPage['page'];

/** A control that writes its state into the address. */
interface AddressCase {
  name: string;
  path: string;
  /** The parameter that the control writes. */
  param: string;
  act: (page: Page) => Promise<unknown>;
  /** In the page after the act, after Forward and after a reload; and not before it. */
  after: (page: Page) => Locator;
  /** In the page at first and after Back. */
  before: (page: Page) => Locator;
}

const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name });

/** A row of buttons of which one is pressed. */
const choice = (
  name: string,
  path: string,
  param: string,
  from: string | RegExp,
  to: string | RegExp,
): AddressCase => ({
  name,
  path,
  param,
  act: (page) => page.getByRole('button', { name: to, exact: true }).first().click(),
  after: (page) => page.getByRole('button', { name: to, exact: true, pressed: true }),
  before: (page) => page.getByRole('button', { name: from, exact: true, pressed: true }),
});

const rowsOf = (page: Page, table: string, text: string) =>
  page.getByRole('table', { name: table }).getByRole('row').filter({ hasText: text });

export const addressCases: readonly AddressCase[] = [
  choice('fleet: view', '/', 'view=board', 'Table', 'Board'),
  choice('fleet: status', '/', 'status=', /^All /, /^Working /),
  choice('agent: tab', '/agents/S00000', 'tab=changes', 'Output', 'Changes'),
  choice(
    'agent: layout of the changes',
    '/agents/S00000?tab=changes',
    'diff=split',
    'Unified',
    'Side by side',
  ),
  {
    name: 'agent: base of the changes',
    path: '/agents/S00000?tab=changes',
    param: 'base=next',
    act: async (page) => {
      await page.getByLabel('Compare with').fill('next');
      await page.getByLabel('Compare with').press('Enter');
    },
    after: (page) => page.locator('input[name=base][value=next]'),
    before: (page) => page.locator('input[name=base][value=""]'),
  },
  {
    name: 'agent: file of the changes',
    path: '/agents/S00000?tab=changes',
    param: 'file=NOTES.md',
    act: (page) => button(page, 'NOTES.md').click(),
    after: (page) => page.locator('button[aria-current]', { hasText: 'NOTES.md' }),
    before: (page) => page.getByRole('group', { name: 'Changes' }),
  },
  choice('inbox: all notes', '/inbox', 'show=all', /^Unread/, 'All'),
  {
    name: 'backends: those that are not installed',
    path: '/backends',
    param: 'show=all',
    act: (page) => button(page, /not installed$/).click(),
    after: (page) => button(page, 'Show installed only'),
    before: (page) => button(page, /not installed$/),
  },
  choice('spend: grouping', '/spend', 'by=repo', 'Agent', 'Repository'),
  choice('spend: time range of savings', '/spend', 'range=30d', '7 days', '30 days'),
  {
    name: 'pipeline: job',
    path: '/pipelines/P1',
    param: 'job=ship',
    act: (page) => button(page, /^ship/).click(),
    after: (page) => page.getByRole('region', { name: 'Job ship' }).getByText('Do the ship step.'),
    before: (page) => page.getByText('Select a job to see its prompt and output.'),
  },
  ...['Tasks', 'Schedules', 'Workers', 'Jobs'].map((tab) =>
    choice(`queue: tab ${tab}`, '/queues/mail.send', `tab=${tab.toLowerCase()}`, 'Overview', tab),
  ),
  choice('queue: time range', '/queues/mail.send', 'range=7d', '1 h', '7 d'),
  choice('tasks: status', '/queues/mail.send?tab=tasks', 'status=DEAD', /^Pending /, /^Dead /),
  {
    name: 'tasks: handler',
    path: '/queues/mail.send?tab=tasks&status=DEAD',
    param: 'handler_ref=break.invoice',
    act: async (page) => {
      await page.getByLabel('Handler').fill('break.invoice');
      await page.getByLabel('Handler').press('Enter');
    },
    after: (page) => page.getByText('1 shown', { exact: true }),
    before: (page) => page.getByText('3 shown', { exact: true }),
  },
  {
    name: 'tasks: group',
    path: '/queues/mail.held?tab=tasks',
    param: 'group_key=ada',
    act: async (page) => {
      await page.getByLabel('Group').fill('ada');
      await page.getByLabel('Group').press('Enter');
    },
    after: (page) => page.getByText('1 shown', { exact: true }),
    before: (page) => page.getByText('2 shown', { exact: true }),
  },
  ...[
    ['from', 'Submitted since', '2099-01-01T10:00'] as const,
    ['to', 'Submitted before', '2020-01-01T10:00'] as const,
  ].map(([param, label, time]): AddressCase => ({
    name: `tasks: ${label.toLowerCase()}`,
    path: '/queues/mail.held?tab=tasks',
    param: `${param}=20`,
    act: (page) => page.getByLabel(label).fill(time),
    after: (page) =>
      page
        .locator('main', { has: page.locator(`input[value='${time}']`) })
        .getByText('No pending task matches the filter.'),
    before: (page) => page.getByText('2 shown', { exact: true }),
  })),
  {
    name: 'tasks: order',
    path: '/queues/mail.send?tab=tasks&status=DEAD',
    param: 'order=oldest',
    act: (page) => page.getByLabel('Order').selectOption('oldest'),
    after: (page) => page.locator('select:has(option[value=oldest]:checked)'),
    before: (page) => page.locator('select:has(option[value=newest]:checked)'),
  },
  {
    name: 'dead letters of all queues: filter',
    path: '/dead-letters',
    param: 'error_type=HTTP_5XX',
    act: (page) => page.getByLabel('Error').selectOption('HTTP_5XX'),
    after: (page) => page.getByText('1 dead task in 1 group'),
    before: (page) => page.getByText('3 dead tasks in 2 groups'),
  },
  ...[
    ['from', 'Dead since', '2099-01-01T10:00'] as const,
    ['to', 'Dead before', '2020-01-01T10:00'] as const,
  ].map(([param, label, time]): AddressCase => ({
    name: `dead letters of a queue: ${label.toLowerCase()}`,
    path: '/dead-letters/mail.send',
    param: `${param}=20`,
    act: (page) => page.getByLabel(label).fill(time),
    after: (page) =>
      page
        .locator('main', { has: page.locator(`input[value='${time}']`) })
        .getByText('No dead task matches the filter.'),
    before: (page) => rowsOf(page, 'Dead tasks', 'break.invoice'),
  })),
  {
    name: 'dead letters of a queue: task',
    path: '/dead-letters/mail.send',
    param: 'task=',
    act: (page) => button(page, 'break.invoice').first().click(),
    after: (page) => page.getByRole('dialog', { name: 'Dead task' }),
    before: (page) => rowsOf(page, 'Dead tasks', 'break.invoice'),
  },
  choice(
    'collection: tab Aggregate',
    '/database/people',
    'tab=aggregate',
    'Records 3',
    'Aggregate',
  ),
  choice('collection: tab Indexes', '/database/people', 'tab=indexes', 'Records 3', 'Indexes 1'),
  choice('collection: tab Schema', '/database/people', 'tab=schema', 'Records 3', 'Schema'),
  {
    name: 'collection: watch',
    path: '/database/people',
    param: 'watch=on',
    act: (page) => button(page, 'Watch live').click(),
    after: (page) => button(page, 'Stop watching'),
    before: (page) => button(page, 'Watch live'),
  },
  {
    name: 'collection: condition',
    path: '/database/people',
    param: 'where=age+gt+30',
    act: async (page) => {
      await button(page, 'Add condition').click();
      await page.getByLabel('Field').fill('age');
      await page.getByLabel('Operator').selectOption('gt');
      await page.getByLabel('Value').fill('30');
      await button(page, /^Run$/).click();
    },
    after: (page) =>
      page
        .locator('main', { has: page.locator("input[aria-label='Value'][value='30']") })
        .getByText(/^2 shown/),
    before: (page) => page.getByText(/^3 shown/),
  },
  {
    name: 'collection: match of the conditions',
    path: '/database/people?where=age+lt+30&where=age+gt+80',
    param: 'match=any',
    act: async (page) => {
      await page.getByLabel('Match').selectOption('any');
      await button(page, /^Run$/).click();
    },
    after: (page) => page.getByText(/^2 shown/),
    before: (page) => page.getByText('No record matches the query.'),
  },
  {
    name: 'collection: columns',
    path: '/database/people',
    param: 'columns=age',
    act: async (page) => {
      await page.locator('summary', { hasText: 'Columns' }).click();
      await page.getByRole('checkbox', { name: 'city' }).uncheck();
    },
    after: (page) => page.locator('.vtable-head:not(:has-text("city"))'),
    before: (page) => page.getByRole('columnheader', { name: 'city' }),
  },
  {
    name: 'aggregate: group, operation and field',
    path: '/database/people?tab=aggregate',
    param: 'group=city&op=avg&of=age',
    act: async (page) => {
      await page.getByLabel('Group by').fill('city');
      await page.getByLabel('Compute').selectOption('avg');
      await page.getByLabel('Field').fill('age');
      await page.getByRole('button', { name: 'Compute', exact: true }).click();
    },
    after: (page) => page.getByRole('heading', { name: 'Average of age by city' }),
    before: (page) => page.getByRole('rowheader', { name: 'All records' }),
  },
  {
    name: 'aggregate: order and number of groups',
    path: '/database/people?tab=aggregate&group=age',
    param: 'order=group&top=2',
    act: async (page) => {
      await page.getByLabel('Order').selectOption('group');
      await page.getByRole('spinbutton', { name: 'Groups' }).fill('2');
      await page.getByRole('button', { name: 'Compute', exact: true }).click();
    },
    after: (page) =>
      page
        .locator('main', { has: page.locator('select:has(option[value=group]:checked)') })
        .locator('.db-groups tbody tr:nth-child(2):last-child'),
    before: (page) => page.locator('.db-groups tbody tr:nth-child(3)'),
  },
  {
    name: 'collection: limit',
    path: '/database/people',
    param: 'limit=2',
    act: async (page) => {
      await page.getByLabel('Limit').fill('2');
      await page.getByRole('button', { name: 'Run', exact: true }).click();
    },
    after: (page) => page.getByText(/^2 shown/),
    before: (page) => page.getByText(/^3 shown/),
  },
  {
    name: 'collection: sort',
    path: '/database/people',
    param: 'sort=age',
    act: (page) =>
      page.getByRole('columnheader', { name: 'age' }).getByRole('button').first().click(),
    after: (page) => page.locator('[role=columnheader][aria-sort=ascending]', { hasText: 'age' }),
    before: (page) => rowsOf(page, 'Records', 'ada'),
  },
  {
    name: 'collection: record',
    path: '/database/people',
    param: 'record=',
    act: (page) => button(page, 'ada').click(),
    after: (page) => page.getByRole('dialog', { name: 'ada' }),
    before: (page) => rowsOf(page, 'Records', 'ada'),
  },
  choice('metrics: part', '/metrics', 'part=queue', 'Machine and agents', 'Queue'),
  choice('metrics: time range', '/metrics', 'range=24h', '1 hour', '24 hours'),
  {
    name: 'metrics: queue',
    path: '/metrics?part=queue&queue=mail.send',
    param: 'queue=mail.digest',
    act: (page) => page.getByRole('combobox', { name: /^Queue/ }).selectOption('mail.digest'),
    after: (page) => page.getByRole('link', { name: 'Open mail.digest' }),
    before: (page) => page.getByRole('link', { name: 'Open mail.send' }),
  },
];
