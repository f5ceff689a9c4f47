/** A handler as the queue calls it, in a process of its own. */
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startProgram } from '../shared/processes.mjs';

const file = fileURLToPath(import.meta.url);

export async function startHandler() {
  const stdio = ['ignore', 'pipe', 'inherit'];
  const child = startProgram(process.execPath, [file, 'serve'], { stdio });
  for await (const url of createInterface({ input: child.stdout })) {
    return { url, stop: () => child.kill() };
  }
  throw new Error('the handler ended before it was ready');
}

if (process.argv[1] === file && process.argv[2] === 'serve') {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(204).end());
  });
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/`));
}
