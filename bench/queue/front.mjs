/**
 * A minimal REST front for a peer, so that all queues use the same load tool and handler:
 * POST /tasks, POST /batch, and /pause, /resume, /clear for the workers. It responds when the peer
 * has stored the task.
 */
import { createServer } from 'node:http';
import { Pool } from 'undici';
import { peers } from './peers.mjs';

const [kind, connection, handlerUrl] = process.argv.slice(2);
const handler = new Pool(handlerUrl, { connections: 64 });

async function deliver(payload) {
  const { statusCode, body } = await handler.request({
    path: '/',
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream' },
    body: Buffer.from(payload, 'base64'),
  });
  await body.dump();
  if (statusCode !== 200) throw new Error(`the handler answered ${statusCode}`);
}

const peer = await peers[kind](JSON.parse(connection), deliver);
const routes = {
  '/tasks': async (body) => void (await peer.submit(JSON.parse(body).payload)),
  '/batch': async (body) =>
    void (await peer.submitAll(JSON.parse(body).map((each) => each.payload))),
  '/pause': () => peer.pause(),
  '/resume': () => peer.resume(),
  '/clear': () => peer.clear(),
};

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const act = routes[request.url];
    Promise.resolve(act(Buffer.concat(chunks).toString())).then(
      () => response.writeHead(202, { 'content-type': 'application/json' }).end('{}'),
      (error) => response.writeHead(500).end(String(error)),
    );
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
process.on('SIGTERM', () => process.exit(0));
