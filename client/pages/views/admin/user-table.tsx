import type { UsersFindOutput } from 'account-client';
import { Icon } from '../../icons/icon.tsx';
import { day } from '../../language/format.ts';
import { text } from '../../language/texts.ts';
import { addressOf, type Listing } from './address.ts';
import { Standing } from './standing.tsx';

type Listed = UsersFindOutput['data'][number];
type Sort = NonNullable<Listing['sort']>;

interface Props {
  users: Listed[];
  listing: Listing;
}

/** On a phone each row is a card: see admin.css. */
export const UserTable = ({ users, listing }: Props) => (
  <table class="users">
    <thead>
      <tr data-label={text('admin.columns.sortBy')}>
        <Column label={text('admin.columns.name')} up="name" down="-name" listing={listing} />
        <Column label={text('common.email')} up="email" down="-email" listing={listing} />
        <th scope="col">{text('admin.columns.standing')}</th>
        <Column label={text('admin.columns.created')} up="created" down="-created" isDownFirst listing={listing} />
        <th scope="col">{text('admin.columns.lastLogin')}</th>
      </tr>
    </thead>
    <tbody>
      {users.map((user) => (
        <tr key={user.id}>
          <th scope="row">
            <a href={addressOf({ user: user.id })}>{user.name}</a>
          </th>
          <td>{user.email}</td>
          <td class="badges">
            <Standing user={user} />
          </td>
          <td data-label={text('admin.columns.created')}>{day(user.createdAt)}</td>
          <td data-label={text('admin.columns.lastLogin')}>
            {user.lastLoginAt === null ? '–' : day(user.lastLoginAt)}
          </td>
        </tr>
      ))}
    </tbody>
  </table>
);

interface ColumnProps {
  label: string;
  up: Sort;
  down: Sort;
  /** Whether the first press sorts downwards. */
  isDownFirst?: boolean;
  listing: Listing;
}

/** The head of a column with an index. A search and a filter have an order of their own. */
function Column({ label, up, down, isDownFirst = false, listing: { q, standing, sort = '-created' } }: ColumnProps) {
  if (q || standing) return <th scope="col">{label}</th>;
  const next = isDownFirst ? (sort === down ? up : down) : sort === up ? down : up;
  const direction = sort === up ? 'ascending' : sort === down ? 'descending' : undefined;
  return (
    <th scope="col" aria-sort={direction}>
      <a href={addressOf({ sort: next })}>
        {label}
        <Icon name="chevronDown" />
      </a>
    </th>
  );
}
