import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { Workshop, type Repository } from '../branches/repositories.test-support.js';
import { memorySessions } from '../sessions/sessions.test-support.js';
import type { Session } from '../sessions/port.js';
import { Workbench } from './workbench.js';

/** A repository with an agent in a worktree of its own. */
export class Bench {
  readonly sessions = memorySessions();
  readonly repo: Repository;
  readonly work: Repository;
  readonly session: Session;
  readonly workbench: Workbench;

  private constructor(readonly shop: Workshop) {
    const { repo, work } = shop.repositoryWithWorktree('topic');
    [this.repo, this.work] = [repo, work];
    this.session = this.agentIn(this.work);
    this.workbench = this.open();
  }

  static async open(): Promise<Bench> {
    return new Bench(await Workshop.open());
  }

  open(runsHooks = false): Workbench {
    const environment = { ...this.shop.environment, PATH: `${this.shop.bin}:/usr/bin:/bin` };
    return new Workbench({ clock: systemClock, environment, runsHooks });
  }

  agentIn({ path }: { path: string }, partial: Partial<Session> = {}): Session {
    const place = { repo: this.repo.path, worktree: path, workdir: path, branch: 'topic' };
    const base = { base_branch: 'main', base_commit: this.repo.git('rev-parse', 'main') };
    return this.sessions.add({ ...place, ...base, name: 'topic', status: 'idle', ...partial });
  }

  file(name: string): string {
    return join(this.work.path, name);
  }

  close(): void {
    this.shop.remove();
  }
}
