/**
 * Runs a step in the page and resolves with the milliseconds from its start to the frame after the
 * one in which the check holds.
 */
const timed = (page, step, check) =>
  page.evaluate(`new Promise((resolve, reject) => {
    const isShown = () => ${check};
    const start = performance.now();
    ${step};
    const look = () => {
      if (isShown()) requestAnimationFrame(() => resolve(performance.now() - start));
      else if (performance.now() - start > 30_000) reject(new Error('not shown within 30 s'));
      else requestAnimationFrame(look);
    };
    look();
  })`);

const text = (selector) =>
  `(document.querySelector(${JSON.stringify(selector)})?.textContent ?? '')`;
const firstRow = '.vtable-scroll .vtable-row';
const setValue = (label, value) => `{
  const input = document.querySelector('input[aria-label=${JSON.stringify(label)}]');
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  set.call(input, ${JSON.stringify(value)});
  input.dispatchEvent(new Event('input', { bubbles: true }));
}`;

const rowsAreThere = (page) => page.locator(firstRow).first().waitFor();

/** Jumps to the end and back; the row at the top of the view must change. */
const scroll = async (page) => {
  const rendered = `[...document.querySelectorAll('${firstRow}')].map((row) => row.textContent)`;
  const before = JSON.stringify((await page.evaluate(rendered)).at(-1));
  const step = `{
    const list = document.querySelector('.vtable-scroll');
    list.scrollTop = list.scrollTop > 0 ? 0 : list.scrollHeight;
  }`;
  return timed(page, step, `${rendered}.at(-1) !== ${before}`);
};

/** `rowCount` agents without processes, answered to the page in place of the daemon's list. */
const withAgents = (rowCount) => async (page) => {
  const at = new Date().toISOString();
  const sessions = Array.from({ length: rowCount }, (_, index) => ({
    id: `S${index}`,
    name: `agent ${index}`,
    status: 'done',
    backend: 'claude',
    model: null,
    driver: 'headless',
    repo: '/src/mill',
    worktree: null,
    branch: `work-${index}`,
    workdir: '/src/mill',
    prompt: 'x',
    tags: [],
    parent_id: null,
    pid: null,
    exit_code: 0,
    auto_restart: false,
    restart_count: 0,
    pipeline_id: null,
    job_id: null,
    context_tokens: null,
    context_state: 'unknown',
    force_compact: 'inherit',
    limited_until: null,
    last_error: null,
    status_reason: null,
    backend_session_id: null,
    status_since: at,
    created_at: at,
    updated_at: at,
  }));
  await page.route(/\/api\/v1\/sessions$/, (route) => route.fulfill({ json: { sessions } }));
  await page.reload();
  await rowsAreThere(page);
};

const link = (name) =>
  `[...document.querySelectorAll('.vtable-row a')].find((one) => one.textContent === '${name}')`;

const navigation = '#nav-list li a';

/** Nothing cached: from the request for the page to the first text that Chromium painted. */
async function firstPaint(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('Network.setCacheDisabled', { cacheDisabled: true });
  await page.reload();
  await page.locator(navigation).first().waitFor();
  await session.detach();
  return page.evaluate(`new Promise((resolve) =>
    new PerformanceObserver((list) => {
      const paint = list.getEntriesByName('first-contentful-paint')[0];
      if (paint) resolve(paint.startTime);
    }).observe({ type: 'paint', buffered: true }))`);
}

/** Follows the links of the navigation one after another, those not seen before included. */
async function changePage(page, round) {
  const count = await page.locator(navigation).count();
  const target = `document.querySelectorAll('${navigation}')[${(round + 1) % count}]`;
  const before = JSON.stringify(await page.locator('h1').first().textContent());
  const isShown = `${target}.ariaCurrent === 'page' && !['', ${before}].includes(${text('h1')})`;
  return timed(page, `${target}.click()`, isShown);
}

const navigationIsThere = (page) => page.locator(navigation).first().waitFor();

export const interactions = (rowCount) => [
  { name: 'first paint', path: '/', prepare: navigationIsThere, act: firstPaint, maxMs: 300 },
  { name: 'change the page', path: '/', prepare: navigationIsThere, act: changePage },
  {
    name: 'search agents',
    path: '/',
    prepare: withAgents(rowCount),
    act: (page, round) => {
      const last = `agent ${rowCount - 1}`;
      const isWanted = round % 2 === 0;
      const check = `${text(firstRow)}.startsWith('${last}') === ${isWanted}`;
      return timed(page, setValue('Search agents', isWanted ? last : ''), check);
    },
  },
  { name: 'scroll agents', path: '/', prepare: withAgents(rowCount), act: scroll },
  {
    name: 'scroll tasks',
    path: '/queues/work?tab=tasks',
    prepare: rowsAreThere,
    act: scroll,
  },
  {
    name: 'filter tasks by status',
    path: '/queues/work?tab=tasks',
    prepare: rowsAreThere,
    act: (page, round) => {
      const [title, check] =
        round % 2 === 0
          ? ['Dead', `document.body.textContent.includes('No dead tasks.')`]
          : ['Pending', `document.querySelector('${firstRow}') !== null`];
      const chip = `[...document.querySelectorAll('.chip')].find((one) => one.textContent.startsWith('${title}'))`;
      return timed(page, `${chip}.click()`, check);
    },
  },
  {
    name: 'select all loaded tasks',
    path: '/queues/work?tab=tasks',
    prepare: rowsAreThere,
    act: (page, round) => {
      const wanted = round % 2 === 0;
      const box = `document.querySelector('input[aria-label="Select all"]')`;
      const check = `document.querySelector('.vtable-scroll input[type=checkbox]').checked === ${wanted}`;
      return timed(page, `${box}.click()`, check);
    },
  },
  {
    name: 'open a task',
    path: '/queues/work?tab=tasks',
    prepare: rowsAreThere,
    act: async (page) => {
      const tookMs = await timed(
        page,
        `(${link('mail.send')}).click()`,
        `location.hash.startsWith('#/tasks/') && document.body.textContent.includes('Payload')`,
      );
      await page.goBack();
      await rowsAreThere(page);
      return tookMs;
    },
  },
  {
    name: 'sort records',
    path: '/database/people',
    prepare: rowsAreThere,
    act: (page) => sorted(page, 'age'),
  },
  { name: 'scroll records', path: '/database/people', prepare: rowsAreThere, act: scroll },
];

/** Clicks the header and waits for the other first row, which the database has sorted. */
async function sorted(page, field) {
  const before = JSON.stringify(await page.locator(firstRow).first().textContent());
  const header = `[...document.querySelectorAll('.vtable-sort')].find((one) => one.textContent.startsWith('${field}'))`;
  return timed(page, `${header}.click()`, `![${before}, ''].includes(${text(firstRow)})`);
}
