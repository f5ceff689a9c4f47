import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import type { FormEvent } from 'react';
import { useChoice } from '../../../parts/choice.js';
import { Button, DialogButton } from '../../../parts/controls.js';
import { count } from '../../../parts/format.js';
import { useIdParam } from '../../../parts/location.js';
import { Panel } from '../../../parts/page.js';
import { Empty, Loaded } from '../../../parts/states.js';
import { useIsNarrow } from '../../../parts/use-is-narrow.js';
import { ActionDialog } from './action-dialog.js';
import { titles, workActions } from './actions.js';
import { sessionDiff, type SessionDiff } from './api.js';
import { DiffView } from './diff-view.js';
import { Counts, FileTree } from './file-tree.js';
import './review.css';

type Session = DaemonSchema<'Session'>;

/** What a session changed, and what can be done with it. */
export default function Review({ session }: { session: Session }) {
  const [base, setBase] = useIdParam('base');
  const diff = useQuery({
    ...sessionDiff(session.id, base, session.status_since),
    placeholderData: (before) => before,
  });
  return (
    <Panel
      title="Changes"
      actions={
        <>
          <BaseField base={base} fallback={diff.data?.base ?? null} onBase={setBase} />
          <Button disabled={diff.isFetching} onClick={() => void diff.refetch()}>
            {diff.isFetching ? 'Refreshing' : 'Refresh'}
          </Button>
          {workActions.map((action) => (
            <DialogButton
              key={action}
              className={action === 'merge' ? 'primary' : undefined}
              label={`${titles[action]}…`}
            >
              {(onClose) => (
                <ActionDialog {...{ action, session, onClose }} base={diff.data?.base ?? null} />
              )}
            </DialogButton>
          ))}
        </>
      }
    >
      <Loaded query={diff} rows={8}>
        {(found) =>
          found.files.length === 0 ? (
            <Empty title={`No difference from ${found.base ?? 'the base'}.`} />
          ) : (
            <Changes diff={found} />
          )
        }
      </Loaded>
    </Panel>
  );
}

const layouts = { unified: 'Unified', split: 'Side by side' };

function Changes({ diff }: { diff: SessionDiff }) {
  const [layout, choice] = useChoice('diff', 'unified', 'Layout', layouts);
  const [file, setFile] = useIdParam('file');
  const isNarrow = useIsNarrow();
  const { files, file_count: fileCount, truncated } = diff;
  return (
    <>
      <div className="row diff-head">
        <span role="status">
          {count(fileCount)} {fileCount === 1 ? 'file' : 'files'} <Counts {...diff} />{' '}
          <span className="muted">since {diff.base ?? 'the first commit'}</span>
        </span>
        {!isNarrow && choice}
      </div>
      {truncated && (
        <p className="panel-body status-warn">
          The difference is larger than 5,000 lines. The rest is not shown: use git in the
          workspace.
        </p>
      )}
      <div className="diff-body">
        <FileTree files={files} selected={file} onSelect={setFile} />
        <DiffView files={files} layout={isNarrow ? 'unified' : layout} selected={file} />
      </div>
    </>
  );
}

interface BaseFieldProps {
  base: string;
  fallback: string | null;
  onBase: (base: string) => void;
}

function BaseField({ base, fallback, onBase }: BaseFieldProps) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onBase(String(new FormData(event.currentTarget).get('base')).trim());
  };
  return (
    <form onSubmit={submit}>
      <label className="row">
        <span className="muted">Compare with</span>
        <input
          key={base}
          name="base"
          className="diff-base"
          placeholder={fallback ?? 'main'}
          defaultValue={base}
        />
      </label>
    </form>
  );
}
