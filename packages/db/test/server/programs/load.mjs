// A closed-loop load generator: each caller sends its next call as soon as the last one is
// answered, until a call is shed or the time is up. Prints the count of each status.
import { Agent, request } from 'node:http';

const [base, callers, lengthMs] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true });
const body = JSON.stringify({ filter: { field: 'n', op: 'regex', value: 'x' } });
const until = performance.now() + Number(lengthMs);
const statuses = {};

function call() {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const sent = request(
      `${base}/v1/c/records:find`,
      { method: 'POST', agent, headers },
      (response) => {
        response.resume();
        response.on('end', () => resolve(response.statusCode));
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

async function caller() {
  while (performance.now() < until && !statuses[429]) {
    const status = await call();
    statuses[status] = (statuses[status] ?? 0) + 1;
  }
}

await Promise.all(Array.from({ length: Number(callers) }, caller));
agent.destroy();
process.stdout.write(JSON.stringify(statuses));
