/**
 * HTTP/1.1 clients that connect only to an address that was checked before: ours (undici behind
 * the guard), node:http with a pinned lookup, and bare undici with a pool per origin.
 */
import { Agent, request } from 'node:http';
import { createOutbound } from '../../packages/wire/dist/http1/index.js';
import { webhookGuard } from '../../packages/kit/dist/outbound/index.js';

const body = Buffer.alloc(300, 'x');
const headers = { 'content-type': 'application/json' };

export const httpClients = {
  own: async (url) => {
    const outbound = createOutbound({ guard: webhookGuard });
    const post = async () => {
      const outcome = await outbound.request({ url, method: 'POST', headers, body });
      if (!outcome.ok || outcome.status !== 204) throw new Error(JSON.stringify(outcome));
    };
    return { post, close: () => outbound.close() };
  },
  'node:http': async (url) => {
    const lookup = (_host, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);
    const agent = new Agent({ keepAlive: true, maxSockets: 512, lookup });
    const post = () =>
      new Promise((resolve, reject) => {
        const sent = request(url, { method: 'POST', headers, agent }, (response) => {
          if (response.statusCode !== 204) reject(new Error(String(response.statusCode)));
          response.resume().on('end', resolve);
        });
        sent.on('error', reject);
        sent.end(body);
      });
    return { post, close: () => agent.destroy() };
  },
  undici: async (url) => {
    const undici = await import('undici');
    const { origin } = new URL(url);
    const pool = new undici.Pool(origin, { connections: 512, pipelining: 1 });
    const post = async () => {
      const answer = await pool.request({ path: '/', method: 'POST', headers, body });
      if (answer.statusCode !== 204) throw new Error(String(answer.statusCode));
      await answer.body.dump();
    };
    return { post, close: () => pool.close() };
  },
};
