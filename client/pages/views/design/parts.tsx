import { useRef, useState } from 'preact/hooks';
import { Menu } from '../../account-menu/account-menu.tsx';
import { CodeField } from '../../form/code-field.tsx';
import { Button, Notice } from '../../form/form.tsx';
import type { FieldState } from '../../form/use-form.ts';
import { Filters } from '../admin/users.tsx';
import { SendingProgress } from '../dashboard/profile/sending-progress.tsx';
import { Row } from '../dashboard/security/row.tsx';
import { Step } from '../dashboard/security/step.tsx';
import { Group } from './group.tsx';
import type { Scheme } from './schemes.ts';
import '../../styles/lists.css';
import '../../styles/picture.css';

const nothing = () => undefined;

/** What the pages put together from controls. */
export const Parts = ({ scheme, code }: { scheme: Scheme; code: FieldState }) => (
  <>
    <Group title="A row with a step and a code">
      <div class="card rows">
        {/* The id of a row is one of the Security page: another one in each scheme. */}
        <Row
          row={{ id: scheme === 'light' ? 'app' : 'email', isOpen: true, toggle: nothing, close: nothing }}
          icon="phone"
          title={`Set up, ${scheme}`}
          state="What is known of it"
          action="Open"
        >
          <Step number={2} title={`One step, ${scheme}`}>
            <CodeField field={code} label="Code" submit={nothing} />
            <Button isBusy={false} busy="" onClick={nothing}>
              Continue
            </Button>
          </Step>
        </Row>
      </div>
    </Group>
    <Group title="Menu, dialog and toast">
      <div class="choices">
        <Menu user={{ name: 'Ada Lovelace', email: 'ada@example.com', avatar: '', isAdministrator: true }} />
        <Dialog scheme={scheme} />
        <Toast />
      </div>
    </Group>
    <Group title="Filters">
      <Filters q={undefined} standing="blocked" label={`Filters in ${scheme}`} />
    </Group>
    <Group title="Progress and meter">
      <SendingProgress size={3_000_000} share={0.4} />
      <p class="strength" data-enough="true">
        <meter min={0} max={4} low={3} optimum={4} value={3} aria-label="Strength" />
        <span>Good</span>
      </p>
    </Group>
  </>
);

function Dialog({ scheme }: { scheme: Scheme }) {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <Button kind="secondary" isBusy={false} busy="" onClick={() => dialog.current?.showModal()}>
        Dialog
      </Button>
      <dialog ref={dialog} aria-labelledby={`${scheme}-dialog`}>
        <div class="stack">
          <h2 id={`${scheme}-dialog`}>A dialog</h2>
          <p>What is decided.</p>
          <div class="choices">
            <Button isBusy={false} busy="" onClick={() => dialog.current?.close()}>
              Close
            </Button>
          </div>
        </div>
      </dialog>
    </>
  );
}

function Toast() {
  const [count, setCount] = useState(0);
  return (
    <>
      <Button kind="secondary" isBusy={false} busy="" onClick={() => setCount(count + 1)}>
        Toast
      </Button>
      {count > 0 && <Notice key={count}>What was done.</Notice>}
    </>
  );
}
