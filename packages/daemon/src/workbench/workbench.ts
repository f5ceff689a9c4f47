import type { DaemonSchema } from '@millrace/contract/daemon';
import { fail } from '../core/api.js';
import type { Session } from '../sessions/port.js';
import { Turns } from '../core/turns.js';
import { merge, onBranch, rebase } from './branch-changes.js';
import { commitAll } from './commit.js';
import { diffOf } from './diff.js';
import type { GitParts } from '../git/run-git.js';
import { findGh, openPullRequest, hasRemote, push } from './pushing.js';
import { openWorkspace, type Workspace } from './workspace.js';

/** Reviews the work of a session, and takes it into the base branch. */
export class Workbench {
  /** One change at a time per repository. */
  readonly #turns = new Turns();

  constructor(private readonly parts: GitParts) {}

  async diff(session: Session, base: string | undefined): Promise<DaemonSchema<'SessionDiff'>> {
    return diffOf(await openWorkspace(this.parts, session), base);
  }

  commit(
    session: Session,
    { message, force }: DaemonSchema<'CommitRequest'>,
  ): Promise<DaemonSchema<'SessionCommit'>> {
    const { runsHooks } = this.parts;
    refuseWorking(session, 'commit', force);
    return this.#change(session, (workspace) => commitAll(workspace, { message, runsHooks }));
  }

  push(
    session: Session,
    params: DaemonSchema<'PushRequest'>,
  ): Promise<DaemonSchema<'SessionPush'>> {
    const { runsHooks } = this.parts;
    return this.#change(session, (workspace) => push(onBranch(workspace), params, runsHooks));
  }

  async openPr(
    session: Session,
    request: DaemonSchema<'OpenPrRequest'>,
  ): Promise<DaemonSchema<'SessionPullRequest'>> {
    const gh = await findGh(this.parts);
    const { runsHooks } = this.parts;
    return this.#change(session, async (any) => {
      const workspace = onBranch(any);
      // gh would ask where to push; without a remote it says what is missing.
      if (await hasRemote(workspace.git)) await push(workspace, {}, runsHooks);
      return openPullRequest({ ...this.parts, gh }, workspace, request);
    });
  }

  merge(
    session: Session,
    { force, strategy = 'merge', ...params }: DaemonSchema<'MergeRequest'>,
  ): Promise<DaemonSchema<'SessionMerge'>> {
    refuseWorking(session, 'merge', force);
    return this.#change(session, (workspace) =>
      merge(onBranch(workspace), { strategy, ...params }),
    );
  }

  rebase(
    session: Session,
    { base, force }: DaemonSchema<'RebaseRequest'>,
  ): Promise<DaemonSchema<'SessionRebase'>> {
    refuseWorking(session, 'rebase', force);
    return this.#change(session, (workspace) => rebase(onBranch(workspace), base));
  }

  async #change<Result>(
    session: Session,
    change: (workspace: Workspace) => Promise<Result>,
  ): Promise<Result> {
    const { git } = await openWorkspace(this.parts, session);
    const common = ['rev-parse', '--path-format=absolute', '--git-common-dir'];
    const repository = await git.text(common);
    return this.#turns.in(repository, async () => change(await openWorkspace(this.parts, session)));
  }
}

/** Files that an agent is writing would be committed or moved halfway. */
function refuseWorking({ name, status }: Session, action: string, force = false): void {
  if (force || (status !== 'working' && status !== 'spawning')) return;
  throw fail(
    'SESSION_STATE',
    `The session "${name}" is ${status}. Wait until its turn is over, stop it, or ${action} ` +
      'anyway with `force`.',
  );
}
