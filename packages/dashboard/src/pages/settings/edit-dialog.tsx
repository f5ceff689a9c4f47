import { ApiError } from '@millrace/client';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { daemon } from '../../api/client.js';
import { queries } from '../../api/queries.js';
import { useAction } from '../../parts/action.js';
import { ChangeTable, SettingErrors, type Difference } from '../../parts/changes.js';
import { Button } from '../../parts/controls.js';
import { FormDialog } from '../../parts/form-dialog.js';
import {
  changesBetween,
  editableGroups,
  errorsOf,
  withSetting,
  type ConfigView,
  type Draft,
} from './draft.js';
import { SettingField } from './field.js';

/** Edits the settings that the daemon can change while it runs: form, difference, save. */
export function EditDialog({ view, onClose }: { view: ConfigView; onClose: () => void }) {
  const client = useQueryClient();
  // The page may refresh its own view meanwhile; the form has the one that it started from.
  const [base, setBase] = useState(view);
  const [draft, setDraft] = useState<Draft>({});
  const [errors, setErrors] = useState<ReadonlyMap<string, string>>(new Map());
  const [review, setReview] = useState<readonly Difference[]>();
  const [isStale, setStale] = useState(false);
  const onFailed = (error: unknown) => {
    setReview(undefined);
    const found = errorsOf(error);
    setErrors(found);
    const isConflict = error instanceof ApiError && error.code === 'CONFIG_CONFLICT';
    setStale(isConflict);
    return isConflict || found.size > 0;
  };
  const send = (validate_only: boolean) => {
    const revision = base.revision ?? undefined;
    const body = { values: draft, validate_only, ...(revision !== undefined && { revision }) };
    return daemon.call('updateConfig', { body });
  };
  const check = useAction({
    run: () => send(true),
    onDone: (after) => {
      setErrors(new Map());
      setReview(changesBetween(base, after));
    },
    onFailed,
  });
  const save = useAction({
    run: () => send(false),
    done: ({ warnings }) => {
      const added = warnings.filter((warning) => !base.warnings.includes(warning));
      return added.length > 0 ? added.join(' ') : 'Settings saved and applied.';
    },
    refresh: ['config'],
    onDone: onClose,
    onFailed,
  });
  const reload = useAction({
    run: () => client.fetchQuery({ ...queries.config(), staleTime: 0 }),
    onDone: (now) => {
      setBase(now);
      setStale(false);
    },
  });
  const change = (next: Draft) => {
    setDraft(next);
    setReview(undefined);
  };
  const isReviewed = review !== undefined && review.length > 0;
  return (
    <FormDialog
      wide
      title="Edit settings"
      submitLabel={isReviewed ? 'Save' : 'Review'}
      busy={check.isPending || save.isPending || isStale}
      alternative={isReviewed && <Button onClick={() => setReview(undefined)}>Back</Button>}
      onSubmit={() => (isReviewed ? save : check).mutate()}
      onClose={onClose}
    >
      {isStale && (
        <div role="alert" className="row" ref={reveal}>
          <span>The config file changed since you opened this form.</span>
          <Button action={reload}>Reload and keep my changes</Button>
        </div>
      )}
      {errors.size > 0 && (
        <div ref={reveal} key={check.submittedAt}>
          <SettingErrors errors={errors} />
        </div>
      )}
      {review && <ChangeTable changes={review} />}
      {!isReviewed && <Fields base={base} draft={draft} errors={errors} onChange={change} />}
    </FormDialog>
  );
}

/** Scrolls to what appears; the form is longer than the screen. */
const reveal = (element: HTMLElement | null) => element?.scrollIntoView({ block: 'center' });

interface FieldsProps {
  base: ConfigView;
  draft: Draft;
  errors: ReadonlyMap<string, string>;
  onChange: (draft: Draft) => void;
}

function Fields({ base, draft, errors, onChange }: FieldsProps) {
  return (
    <>
      {editableGroups(base).map(([group, entries]) => (
        <fieldset key={group}>
          <legend>{group}</legend>
          <div className="fields">
            {entries.map((entry) => (
              <SettingField
                // A list has its own text, which starts from the value.
                key={`${entry.key} ${base.revision}`}
                entry={entry}
                value={entry.key in draft ? draft[entry.key] : entry.value}
                error={errors.get(entry.key)}
                onChange={(value) => onChange(withSetting(draft, entry, value))}
              />
            ))}
          </div>
        </fieldset>
      ))}
    </>
  );
}
