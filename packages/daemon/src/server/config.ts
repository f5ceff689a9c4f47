export * from '../savings/index.js';
export { tmuxSocket } from '../sessions/drivers/session-files.js';
export * from '../storage/data-files.js';
export { daemonConfig, type DaemonSettings } from '../core/settings.js';
export { ensureToken } from './access/tokens.js';
