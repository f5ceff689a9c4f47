import { useState } from 'react';
import { Status } from '../../parts/status.js';
import type { Plan } from './api.js';
import { planSteps, wastes, type PlanStep, type ScanContext } from './plan.js';

interface PlanViewProps extends ScanContext {
  plan: Plan;
}

/** The query plan of the first page as a tree, with a hint when an index would help. */
export function PlanView({ plan, ...context }: PlanViewProps) {
  const [isOpen, setIsOpen] = useState(false);
  const steps = planSteps(plan, context);
  const scan = steps.at(-1)!;
  const tone = scan.isCostly ? 'warn' : plan.full_scan ? 'calm' : 'good';
  const { elapsed_ms } = plan;
  return (
    <details
      className="db-plan"
      open={isOpen}
      onToggle={(event) => setIsOpen(event.currentTarget.open)}
    >
      <summary>
        <Status tone={tone}>{scan.title}</Status> <span>{scan.note}</span>
        {plan.sorted_in_memory && <span className="status-warn"> sorted in memory</span>}{' '}
        <span className="muted">{elapsed_ms.toFixed(elapsed_ms < 10 ? 1 : 0)} ms</span>
        {context.couldUseIndex && wastes(plan) && (
          <span className="muted"> An index on the field would help: create it under Indexes.</span>
        )}
      </summary>
      {isOpen && <Steps steps={steps} />}
    </details>
  );
}

function Steps({ steps: [first, ...rest] }: { steps: readonly PlanStep[] }) {
  if (!first) return null;
  const { title, note, isCostly } = first;
  return (
    <ul className="db-plan-tree">
      <li>
        <span className={isCostly ? 'status-warn' : undefined}>{title}</span>{' '}
        <span className="muted">{note}</span>
        <Steps steps={rest} />
      </li>
    </ul>
  );
}
