export { History } from './task-observer.js';
export { TaskObserver } from './task-observer.js';
export { Background, type BackgroundControl } from './background.js';
export { hasRoom, scheduledTask } from './scheduler.js';
