export * from './list.js';
export * as queueLists from './queue.js';
export * as queueActions from './queue-commands.js';
