import { useState } from 'preact/hooks';
import { pagePaths } from '../../../../../server/shared/page-paths.ts';
import { api } from '../../../api.ts';
import { PasswordField } from '../../../form/fields.tsx';
import { Button, Form, Notice } from '../../../form/form.tsx';
import { unmetRules } from '../../../form/password-rules.ts';
import { useForm } from '../../../form/use-form.ts';
import { text } from '../../../language/texts.ts';
import { sessionEnded } from '../../session-ended.tsx';
import { passwordChanged } from '../breached-password.tsx';
import { useRecentCredential } from './recent-credential.tsx';
import { Row } from './row.tsx';
import type { RowState } from './use-open-row.ts';

const empty = { currentPassword: '', newPassword: '' };

interface Props {
  row: RowState;
  name: string;
  email: string;
  hasPassword: boolean;
  /** Called after a change, including one made elsewhere. */
  onChange(): void;
}

/** Changes the password, or sets the first one of a user of a provider. */
export function PasswordCard({ row, name, email, hasPassword, onChange }: Props) {
  const [isChanged, setChanged] = useState(false);
  const { withRecentCredential, question, isAsking } = useRecentCredential();
  const { field, isBusy, form } = useForm({
    initial: empty,
    required: {
      ...(hasPassword && { currentPassword: text('dashboard.password.currentMissing') }),
      newPassword: text('dashboard.password.newMissing'),
    },
    check: ({ newPassword }) => unmetRules({ newPassword }),
    send({ currentPassword, newPassword }) {
      setChanged(false);
      const input = { newPassword, ...(hasPassword && { currentPassword }) };
      return withRecentCredential(
        () => api.account.changePassword.mutate(input),
        () => {
          setChanged(true);
          row.close();
          passwordChanged();
          onChange();
          return empty;
        },
      );
    },
    explain(refusal) {
      if (refusal.code === 'INVALID_CREDENTIALS') {
        return { field: 'currentPassword', message: refusal.message };
      }
      if (refusal.details['currentPassword']) onChange();
      return sessionEnded(refusal);
    },
  });
  return (
    <Row
      row={row}
      icon="password"
      title={text('common.password')}
      state={
        <span class={hasPassword ? 'badge success' : 'badge'}>
          {text(hasPassword ? 'dashboard.password.isSet' : 'dashboard.password.notSet')}
        </span>
      }
      action={text(hasPassword ? 'dashboard.security.change' : 'dashboard.security.setUp')}
      notice={isChanged && !isBusy && <Notice>{text('dashboard.password.changed')}</Notice>}
    >
      <Form {...form}>
        {/* For password managers: the account that the password belongs to. */}
        <input
          class="unseen"
          type="email"
          autocomplete="username"
          value={email}
          readOnly
          tabIndex={-1}
          aria-hidden="true"
        />
        {hasPassword && (
          <PasswordField field={field('currentPassword')} label={text('dashboard.password.current')} isNew={false} />
        )}
        <PasswordField
          field={field('newPassword')}
          label={text('dashboard.password.new')}
          isNew
          about={[name, email]}
        />
        <Button isBusy={isBusy} isAsking={isAsking} busy={text('dashboard.password.changing')}>
          {text(hasPassword ? 'dashboard.password.change' : 'dashboard.password.set')}
        </Button>
      </Form>
      {question}
      {hasPassword && (
        <p class="hint">
          <a href={pagePaths.forgotPassword}>{text('dashboard.password.forgot')}</a>
        </p>
      )}
    </Row>
  );
}
