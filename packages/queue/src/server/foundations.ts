import { createDelivery } from '../delivery/index.js';
import { openStore } from '../storage/open-store.js';
import type { Foundations } from './server.js';

/** The real store and the real delivery. */
export const foundations: Foundations = {
  openStore: ({ storage, data }, world) => openStore(storage, { ...world, dataDirectory: data }),
  createDelivery,
};
