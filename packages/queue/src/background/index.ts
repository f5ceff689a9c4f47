export { countedStore } from './counted-store.js';
export { History } from './history.js';
export { Background, type BackgroundControl } from './background.js';
export { hasRoom, scheduledTask } from './scheduler.js';
