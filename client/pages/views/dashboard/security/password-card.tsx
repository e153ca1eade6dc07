import { useState } from 'preact/hooks';
import { pagePaths } from '../../../../../server/shared/page-paths.ts';
import { api } from '../../../api.ts';
import { PasswordField } from '../../../form/fields.tsx';
import { Button, Form, Notice } from '../../../form/form.tsx';
import { unmetRules } from '../../../form/password-rules.ts';
import { useForm } from '../../../form/use-form.ts';
import { text } from '../../../language/texts.ts';
import { sessionEnded } from '../../session-ended.tsx';
import { useRecentCredential } from './recent-credential.tsx';

const empty = { currentPassword: '', newPassword: '' };

interface Props {
  email: string;
  hasPassword: boolean;
  /** Called after a change, including one made elsewhere. */
  onChange(): void;
}

/** Changes the password, or sets the first one of a user of a provider. */
export function PasswordCard({ email, hasPassword, onChange }: Props) {
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
    <section class="card" aria-labelledby="password">
      <h2 id="password">{text('common.password')}</h2>
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
        <PasswordField field={field('newPassword')} label={text('dashboard.password.new')} isNew />
        <Button isBusy={isBusy} isAsking={isAsking} busy={text('dashboard.password.changing')}>
          {text(hasPassword ? 'dashboard.password.change' : 'dashboard.password.set')}
        </Button>
      </Form>
      {question}
      {isChanged && !isBusy && <Notice>{text('dashboard.password.changed')}</Notice>}
      {hasPassword && (
        <p class="aside">
          <a href={pagePaths.forgotPassword}>{text('dashboard.password.forgot')}</a>
        </p>
      )}
    </section>
  );
}
