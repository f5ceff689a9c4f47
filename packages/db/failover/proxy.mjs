import { connect, createServer } from 'node:net';

/** A TCP proxy whose traffic can be cut, delayed or stopped. */
export async function startProxy(targetPort) {
  const sockets = new Set();
  let state = 'open';
  let delayMs = 0;
  const server = createServer((inner) => {
    if (state === 'cut') return inner.destroy();
    const outer = connect(targetPort, '127.0.0.1');
    link(inner, outer);
    link(outer, inner);
  });
  const link = (from, to) => {
    sockets.add(from);
    from.on('error', () => undefined);
    from.on('close', () => {
      sockets.delete(from);
      to.destroy();
    });
    from.on('data', (bytes) => {
      if (delayMs === 0) to.write(bytes);
      else setTimeout(() => to.writable && to.write(bytes), delayMs);
    });
    if (state === 'stopped') from.pause();
  };
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: server.address().port,
    /** Closes all connections and accepts no more. */
    cut() {
      state = 'cut';
      for (const socket of sockets) socket.destroy();
    },
    /** Connections stay open, but nothing passes: like a network that drops every packet. */
    stop() {
      state = 'stopped';
      for (const socket of sockets) socket.pause();
    },
    delay(ms) {
      delayMs = ms;
    },
    heal() {
      // A connection that lost bytes in between is closed, as after a long partition.
      if (state === 'stopped') for (const socket of sockets) socket.destroy();
      state = 'open';
      delayMs = 0;
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
