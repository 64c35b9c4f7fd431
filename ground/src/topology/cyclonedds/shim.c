/* What the proving ground needs of Cyclone DDS, in functions of numbers and pointers alone. Built into a library of its own,
 * which is loaded when it is asked for: the program does without. Entities are positive, errors negative. */

#include <string.h>

#include <dds/dds.h>

#include "sample.h"

/* All that is heard and said stays on the loopback interface. */
static const char *const config =
  "<General><Interfaces><NetworkInterface name=\"lo\" multicast=\"false\"/></Interfaces>"
  "<AllowMulticast>false</AllowMulticast></General>"
  "<Discovery><ParticipantIndex>auto</ParticipantIndex></Discovery>";

int32_t ground_participant(uint32_t domain)
{
  const dds_entity_t made = dds_create_domain(domain, config);
  return made < 0 ? made : dds_create_participant(domain, NULL, NULL);
}

void ground_delete_all(void)
{
  dds_delete(DDS_CYCLONEDDS_HANDLE);
}

void ground_delete(int32_t entity)
{
  dds_delete(entity);
}

const char *ground_error(int32_t code)
{
  return dds_strretcode(code);
}

int32_t ground_topic(int32_t participant, const char *name)
{
  return dds_create_topic(participant, &ground_Sample_desc, name, NULL, NULL);
}

/* A depth of 0 keeps all. */
static dds_qos_t *qos_of(int32_t depth, int32_t is_reliable)
{
  dds_qos_t *qos = dds_create_qos();
  dds_qset_history(qos, depth == 0 ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST, depth == 0 ? DDS_LENGTH_UNLIMITED : depth);
  dds_qset_reliability(qos, is_reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, DDS_MSECS(100));
  return qos;
}

int32_t ground_reader(int32_t participant, int32_t topic, int32_t depth, int32_t is_reliable)
{
  dds_qos_t *qos = qos_of(depth, is_reliable);
  const int32_t reader = dds_create_reader(participant, topic, qos, NULL);
  dds_delete_qos(qos);
  return reader;
}

int32_t ground_writer(int32_t participant, int32_t topic, int32_t is_reliable)
{
  dds_qos_t *qos = qos_of(10, is_reliable);
  const int32_t writer = dds_create_writer(participant, topic, qos, NULL);
  dds_delete_qos(qos);
  return writer;
}

/* How many readers a writer has found, or an error. */
int32_t ground_matched(int32_t writer)
{
  dds_publication_matched_status_t status;
  const int32_t done = dds_get_publication_matched_status(writer, &status);
  return done < 0 ? done : (int32_t)status.current_count;
}

int32_t ground_write(int32_t writer, const uint64_t header[3], uint32_t id, const uint8_t *payload, uint32_t length)
{
  const ground_Sample sample = {
    .number = header[0],
    .stamp_ns = header[1],
    .period_ns = header[2],
    .writer = id,
    .payload = { ._maximum = length, ._length = length, ._buffer = (uint8_t *)payload, ._release = false }
  };
  return dds_write(writer, &sample);
}

/* Takes one sample, which is lent until it is given back: 1 if there was one, 0 if not. */
int32_t ground_take(int32_t reader, void **loan, uint64_t header[3], uint32_t *id, const uint8_t **payload, uint32_t *length)
{
  dds_sample_info_t info;
  *loan = NULL;
  const int32_t taken = dds_take(reader, loan, &info, 1, 1);
  if (taken <= 0) {
    return taken;
  }
  const ground_Sample *sample = *loan;
  header[0] = sample->number;
  header[1] = sample->stamp_ns;
  header[2] = sample->period_ns;
  *id = sample->writer;
  *payload = sample->payload._buffer;
  *length = info.valid_data ? sample->payload._length : 0;
  return info.valid_data ? 1 : 2;
}

void ground_give_back(int32_t reader, void *loan)
{
  dds_return_loan(reader, &loan, 1);
}

/* Calls back at every delivery, on the thread that delivers. */
int32_t ground_listen(int32_t reader, void (*callback)(dds_entity_t, void *), void *context)
{
  dds_listener_t *listener = dds_create_listener(NULL);
  dds_lset_data_available_arg(listener, callback, context, false);
  const int32_t done = dds_set_listener(reader, listener);
  dds_delete_listener(listener);
  return done;
}

int32_t ground_read_condition(int32_t reader)
{
  return dds_create_readcondition(reader, DDS_ANY_STATE);
}

int32_t ground_wait_set(int32_t participant)
{
  return dds_create_waitset(participant);
}

int32_t ground_guard(int32_t participant)
{
  return dds_create_guardcondition(participant);
}

int32_t ground_set_guard(int32_t guard, int32_t is_triggered)
{
  return dds_set_guardcondition(guard, is_triggered != 0);
}

int32_t ground_attach(int32_t wait_set, int32_t condition, intptr_t token)
{
  return dds_waitset_attach(wait_set, condition, token);
}

/* Waits; a negative time is for ever. Writes the tokens of what is ready, and returns their number, which may be larger. */
int32_t ground_wait(int32_t wait_set, intptr_t *tokens, size_t room, int64_t timeout_ns)
{
  return dds_waitset_wait(wait_set, tokens, room, timeout_ns < 0 ? DDS_INFINITY : timeout_ns);
}
