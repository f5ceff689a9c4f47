import { readFileSync } from 'node:fs';
import { systemCode } from '@millrace/kit/errors';

/** Whether a process runs. One that ended and was not reaped by its parent does not. */
export function isAlive(pid: number): boolean {
  // 0 and negative numbers mean a process group, such as our own.
  if (!Number.isInteger(pid) || pid < 1) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process of another user is alive too.
    return systemCode(error) === 'EPERM';
  }
  return !isZombie(pid);
}

function isZombie(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name before the state is in parentheses and may contain some.
    return stat.charAt(stat.lastIndexOf(')') + 2) === 'Z';
  } catch (error) {
    // The system has no /proc, or the process has just ended.
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ESRCH') return false;
    throw error;
  }
}
