import { useQuery } from '@tanstack/react-query';
import { queries } from '../../api/queries.js';
import { DefinitionPage } from '../../parts/definition-page.js';
import { PlanView } from './plan-view.js';
import { planTones } from './race.js';
import './plans.css';

const example = `title: Retry uploads
repo: /path/to/repository
tasks:
  - key: upload
    prompt: Retry an upload once, with a test.
    race: [claude, codex]
    verify: npm test
    review: { by: claude, rounds: 2 }
    merge: ask
  - key: docs
    prompt: Describe the new behaviour.
    depends_on: [upload]
`;

export default function PlansPage({ params }: { params: Readonly<Record<string, string>> }) {
  return (
    <DefinitionPage
      title="Plans"
      kind="plan"
      list="plans"
      example={example}
      hint="YAML or JSON. Tasks that wait for nothing start at once."
      empty={
        <>
          A plan is a set of tasks that agents do, with checks, reviews and a merge gate. Create one
          here, or with <code>ctl agent plan plan.yaml</code>.
        </>
      }
      query={useQuery(queries.plans())}
      id={params['id']}
      nameOf={({ title }) => title}
      tones={planTones}
      parts={[
        'Tasks',
        ({ tasks }) => `${tasks.filter(({ status }) => status === 'done').length}/${tasks.length}`,
      ]}
      view={(plan) => <PlanView key={plan.id} plan={plan} />}
    />
  );
}
