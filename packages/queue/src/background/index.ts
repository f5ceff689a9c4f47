export { Background, type BackgroundControl } from './background.js';
export { hasRoom, scheduledTask } from './scheduler.js';
