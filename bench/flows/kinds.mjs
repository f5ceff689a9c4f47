/** The same flows by the SDK of each contestant: `flow`, `wakeUp`, `fan` and `hang`. */

export const contestants = { millrace, dbos, bullmq, restate };
const concurrency = 64;

/** `connection`: of a server, or `{ data }` to run in this process. */
async function millrace(connection, { now, second }) {
  const { connectQueue, defineTasks } = await import('@millrace/worker');
  const tasks = defineTasks();
  let queue;
  if (connection.data === undefined) queue = connectQueue(connection, tasks);
  else {
    const { openQueue } = await import('@millrace/queue');
    queue = await openQueue({ data: connection.data, autoCreate: true }, tasks);
  }
  queue.createWorker(
    { queue: 'bench', concurrency },
    {
      flow: async ({ payload, step }) => {
        for (let i = 0; i < payload; i++) await step.run(`step-${i}`, () => null);
      },
      child: () => now(),
      parent: async ({ step }) => {
        const endedAt = await step.submit('child', 'bench', 'child', null);
        return step.run('next', () => now() - endedAt);
      },
      fan: async ({ payload, step }) => {
        await step.submitMany('children', 'bench', 'child', Array(payload).fill(null));
      },
      hang: async ({ step }) => {
        await step.run('first', () => null);
        await step.run('second', second);
      },
    },
  );
  const run = async (ref, payload) => (await queue.submitAndWait('bench', ref, payload)).result;
  return {
    flow: (steps) => run('flow', steps),
    wakeUp: () => run('parent', null),
    fan: (children) => run('fan', children),
    hang: () => queue.submit('bench', 'hang', null),
  };
}

async function dbos({ url }, { now, second }) {
  const { DBOS } = await import('@dbos-inc/dbos-sdk');
  const register = (name, run) => DBOS.registerWorkflow(run, { name });
  const step = (name, run) => DBOS.runStep(async () => run(), { name });
  const flow = register('flow', async (steps) => {
    for (let i = 0; i < steps; i++) await step(`step-${i}`, () => null);
  });
  const child = register('child', async () => now());
  const parent = register('parent', async () => {
    const endedAt = await child();
    return step('next', () => now() - endedAt);
  });
  const fan = register('fan', async (children) => {
    const handles = [];
    for (let i = 0; i < children; i++) handles.push(await DBOS.startWorkflow(child)());
    for (const handle of handles) await handle.getResult();
  });
  const hang = register('hang', async () => {
    await step('first', () => null);
    await step('second', second);
  });
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: url,
    logLevel: 'error',
    runAdminServer: false,
  });
  await DBOS.launch();
  const run = async (workflow, ...args) =>
    (await DBOS.startWorkflow(workflow)(...args)).getResult();
  return {
    flow: (steps) => run(flow, steps),
    wakeUp: () => run(parent),
    fan: (children) => run(fan, children),
    hang: () => run(hang),
  };
}

/** A flow is a chain of jobs that is known beforehand: there are no steps. */
async function bullmq(connection, { now, second }) {
  const { FlowProducer, QueueEvents, Worker } = await import('bullmq');
  const queueName = 'bench';
  let childEndedAt = 0;
  const handlers = {
    step: () => null,
    child: () => {
      childEndedAt = now();
      return null;
    },
    parent: () => now() - childEndedAt,
    second,
  };
  const worker = new Worker(queueName, async ({ name }) => handlers[name](), {
    connection,
    concurrency,
  });
  const events = new QueueEvents(queueName, { connection });
  const producer = new FlowProducer({ connection });
  await Promise.all([worker.waitUntilReady(), events.waitUntilReady()]);
  const node = (name, children = []) => ({ name, queueName, data: null, children });
  const run = async (flow) => {
    const { job } = await producer.add(flow);
    return job.waitUntilFinished(events);
  };
  const chain = (steps) =>
    Array.from({ length: steps }).reduce((below) => node('step', below ? [below] : []), undefined);
  return {
    flow: (steps) => run(chain(steps)),
    wakeUp: () => run(node('parent', [node('child')])),
    fan: (children) =>
      run(
        node(
          'step',
          Array.from({ length: children }, () => node('step')),
        ),
      ),
    hang: () => producer.add(node('second', [node('step')])),
  };
}

/** The server calls this process; its SDK needs Node 22. */
async function restate({ admin, ingress, port }, { now, second }) {
  const { endpoint, RestatePromise, service } = await import('@restatedev/restate-sdk');
  const children = service({ name: 'children', handlers: { child: async () => now() } });
  const flows = service({
    name: 'flows',
    handlers: {
      flow: async (context, steps) => {
        for (let i = 0; i < steps; i++) await context.run(`step-${i}`, () => null);
      },
      parent: async (context) => {
        const endedAt = await context.serviceClient(children).child();
        return context.run('next', () => now() - endedAt);
      },
      fan: async (context, count) => {
        const client = context.serviceClient(children);
        await RestatePromise.all(Array.from({ length: count }, () => client.child()));
      },
      hang: async (context) => {
        await context.run('first', () => null);
        await context.run('second', second);
      },
    },
  });
  await endpoint().bind(flows).bind(children).listen(port);
  const post = async (url, body) => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
    const answer = await fetch(url, { ...init, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
    const text = await answer.text();
    return text === '' ? undefined : JSON.parse(text);
  };
  await post(`${admin}/deployments`, { uri: `http://127.0.0.1:${port}`, force: true });
  return {
    flow: (steps) => post(`${ingress}/flows/flow`, steps),
    wakeUp: () => post(`${ingress}/flows/parent`, null),
    fan: (count) => post(`${ingress}/flows/fan`, count),
    hang: () => post(`${ingress}/flows/hang/send`, null),
  };
}
