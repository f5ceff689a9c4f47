import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { PlainConnection } from './connection.js';
import type { PlainService } from './connection.js';

/**
 * Lets a service have the connections of an HTTP server for as long as their requests are plain.
 * Node's parser, its request and its response cost more than all that is done with a small request;
 * what they are good for is what such requests do without.
 */
export function openPlainDoor<Route>(
  server: Server,
  service: PlainService<Route>,
  keepAliveTimeoutMs: number,
): void {
  const open = new Set<PlainConnection<Route>>();
  const nodeListeners = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  const options = {
    service,
    keepAliveTimeoutMs,
    closed: (connection: PlainConnection<Route>) => void open.delete(connection),
    handOver: (socket: Socket, bytes: Buffer) => {
      for (const take of nodeListeners) take.call(server, socket);
      // Only listeners that are there by now hear of it, and nothing was read meanwhile.
      socket.emit('data', bytes);
    },
  };
  server.on('connection', (socket: Socket) => void open.add(new PlainConnection(socket, options)));
  const closeIdle = server.closeIdleConnections.bind(server);
  const closeAll = server.closeAllConnections.bind(server);
  server.closeIdleConnections = () => {
    closeIdle();
    for (const { isIdle, socket } of open) if (isIdle) socket.destroy();
  };
  server.closeAllConnections = () => {
    closeAll();
    for (const { socket } of open) socket.destroy();
  };
}
