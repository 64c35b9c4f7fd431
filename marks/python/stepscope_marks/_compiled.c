/* The marks of C for Python: what _pure.py does, about ten times as fast.
 *
 * One file for CPython 3.8 and later (stable ABI). `pip install marks/python` builds it where a C compiler and Python's
 * headers are installed:
 *
 *     python3 compiled.py stepscope_marks/_compiled.abi3.so
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03080000
#include <Python.h>

/* The same in CPython 3.7 to 3.9, but of the stable ABI from 3.10 on. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif

#define STEPSCOPE_MARKS 1
#include "stepscope.h"

/* Numbers of names. A child of fork keeps its parent's names and so their numbers. */
static PyObject *numbers;

static int is_recording(void) {
  return stepscope_is_recording_() && (stepscope_state_v1_.segment || stepscope_opened_v1_());
}

static PyObject *tell_recording(PyObject *module, PyObject *nothing) {
  (void)module;
  (void)nothing;
  return PyBool_FromLong(is_recording());
}

static uint64_t add_name(PyObject *name) {
  PyObject *text, *number;
  uint32_t id;
  if (!PyUnicode_Check(name)) {
    PyErr_SetString(PyExc_TypeError, "the name of a mark is a string");
    return UINT64_MAX;
  }
  text = PyUnicode_AsEncodedString(name, "utf-8", "replace");
  if (!text) return UINT64_MAX;
  id = stepscope_name_v1_(PyBytes_AsString(text));
  Py_DECREF(text);
  /* Names without room are tried again: each try is counted as a lost name. */
  if (id == 0) return 0;
  number = PyLong_FromUnsignedLong(id);
  if (!number || PyDict_SetItem(numbers, name, number) < 0) {
    Py_XDECREF(number);
    return UINT64_MAX;
  }
  Py_DECREF(number);
  return id;
}

/* The number of a name, 0 without room for it, UINT64_MAX with a Python error. */
static uint64_t number_of(PyObject *name) {
  PyObject *known = PyDict_GetItemWithError(numbers, name);
  if (known) return PyLong_AsUnsignedLong(known);
  return PyErr_Occurred() ? UINT64_MAX : add_name(name);
}

/* --- Scopes ------------------------------------------------------------------------------------------------------- */

typedef struct {
  PyObject_HEAD
  PyObject *name;
  stepscope_open open;
} Scope;

static PyObject *scope_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
  static char *keywords[] = {"name", NULL};
  PyObject *name;
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  Scope *scope;
  if (named == NULL && PyTuple_Size(arguments) == 1) name = PyTuple_GetItem(arguments, 0);
  else if (!PyArg_ParseTupleAndKeywords(arguments, named, "O:scope", keywords, &name)) return NULL;
  scope = (Scope *)allocate(type, 0);
  if (!scope) return NULL;
  Py_INCREF(name);
  scope->name = name;
  return (PyObject *)scope;
}

static void scope_delete(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  Py_XDECREF(((Scope *)object)->name);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static PyObject *scope_enter(PyObject *object, PyObject *nothing) {
  Scope *scope = (Scope *)object;
  (void)nothing;
  scope->open.start = 0;
  if (is_recording()) {
    uint64_t number = number_of(scope->name);
    if (number == UINT64_MAX) return NULL;
    scope->open.name = (uint32_t)number;
    scope->open.start = stepscope_now_();
  }
  Py_INCREF(object);
  return object;
}

static PyObject *scope_exit(PyObject *object, PyObject *const *error, Py_ssize_t count) {
  (void)error;
  (void)count;
  stepscope_end_(&((Scope *)object)->open);
  Py_RETURN_NONE;
}

/* A function whose every call is a scope. */
static PyObject *scope_call(PyObject *object, PyObject *arguments, PyObject *named) {
  PyObject *function, *module, *decorated;
  static char *keywords[] = {"function", NULL};
  if (!PyArg_ParseTupleAndKeywords(arguments, named, "O:scope", keywords, &function)) return NULL;
  module = PyImport_ImportModule("stepscope_marks._decorated");
  if (!module) return NULL;
  decorated = PyObject_CallMethod(module, "decorated", "OOO", Py_TYPE(object), ((Scope *)object)->name, function);
  Py_DECREF(module);
  return decorated;
}

static PyMethodDef scope_methods[] = {
    {"__enter__", scope_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))scope_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};

static const char scope_doc[] =
    "A named interval on a thread: `with scope(\"physics\"):`, or `@scope(\"physics\")` before a function.\n\n"
    "Use one object for one `with` at a time. A decorated function may be called by any thread, and recursively.";

static PyType_Slot scope_slots[] = {
    {Py_tp_new, (void *)scope_new},
    {Py_tp_dealloc, (void *)scope_delete},
    {Py_tp_methods, scope_methods},
    {Py_tp_call, (void *)scope_call},
    {Py_tp_doc, (void *)scope_doc},
    {0, NULL}};

static PyType_Spec scope_type = {
    "stepscope_marks.scope", sizeof(Scope), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, scope_slots};

/* --- Marks of a moment -------------------------------------------------------------------------------------------- */

static PyObject *step(PyObject *module, PyObject *arguments, PyObject *named) {
  static char *keywords[] = {"sim_time_s", "ns", NULL};
  PyObject *seconds = Py_None, *ns = Py_None;
  int64_t time = INT64_MIN;
  (void)module;
  if (!is_recording()) Py_RETURN_NONE;
  if (!PyArg_ParseTupleAndKeywords(arguments, named, "|O$O:step", keywords, &seconds, &ns)) return NULL;
  if (ns != Py_None) {
    time = (int64_t)PyLong_AsUnsignedLongLongMask(ns);
  } else if (seconds != Py_None) {
    time = stepscope_sim_ns_(PyFloat_AsDouble(seconds));
  }
  if (PyErr_Occurred()) return NULL;
  stepscope_write_((uint64_t)time, stepscope_now_(), STEPSCOPE_KIND_STEP_, 0);
  Py_RETURN_NONE;
}

/* Marks a number of a name. */
static PyObject *mark(PyObject *name, uint64_t payload, uint32_t kind) {
  uint64_t number;
  if (!is_recording()) Py_RETURN_NONE;
  number = number_of(name);
  if (number == UINT64_MAX) return NULL;
  stepscope_write_(payload, stepscope_now_(), kind, (uint32_t)number);
  Py_RETURN_NONE;
}

static PyObject *counter(PyObject *module, PyObject *arguments, PyObject *named) {
  static char *keywords[] = {"name", "value", NULL};
  PyObject *name, *value, *integer;
  uint64_t payload;
  (void)module;
  if (!PyArg_ParseTupleAndKeywords(arguments, named, "OO:counter", keywords, &name, &value)) return NULL;
  integer = PyNumber_Index(value);
  if (!integer) {
    if (PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Format(PyExc_TypeError, "counter %R is no integer: scale it, and name its unit, as in height_um", name);
    }
    return NULL;
  }
  payload = PyLong_AsUnsignedLongLongMask(integer);
  Py_DECREF(integer);
  return mark(name, payload, STEPSCOPE_KIND_COUNTER_);
}

static PyObject *frame_mark(PyObject *module, PyObject *name) {
  (void)module;
  return mark(name, 0, STEPSCOPE_KIND_FRAME_);
}

static PyObject *flow(PyObject *arguments, PyObject *named, uint32_t kind) {
  static char *keywords[] = {"topic", "id", NULL};
  PyObject *topic, *id, *integer;
  uint64_t payload;
  if (!is_recording()) Py_RETURN_NONE;
  if (!PyArg_ParseTupleAndKeywords(arguments, named, "OO", keywords, &topic, &id)) return NULL;
  integer = PyNumber_Index(id);
  if (!integer) return NULL;
  payload = PyLong_AsUnsignedLongLongMask(integer);
  Py_DECREF(integer);
  return mark(topic, payload, kind);
}

static PyObject *flow_begin(PyObject *module, PyObject *arguments, PyObject *named) {
  (void)module;
  return flow(arguments, named, STEPSCOPE_KIND_FLOW_BEGIN_);
}

static PyObject *flow_step(PyObject *module, PyObject *arguments, PyObject *named) {
  (void)module;
  return flow(arguments, named, STEPSCOPE_KIND_FLOW_STEP_);
}

static PyObject *flow_end(PyObject *module, PyObject *arguments, PyObject *named) {
  (void)module;
  return flow(arguments, named, STEPSCOPE_KIND_FLOW_END_);
}

#define WITH_KEYWORDS(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

static PyMethodDef functions[] = {
    {"is_recording", tell_recording, METH_NOARGS, NULL},
    {"step", WITH_KEYWORDS(step), NULL},
    {"counter", WITH_KEYWORDS(counter), NULL},
    {"frame_mark", frame_mark, METH_O, NULL},
    {"flow_begin", WITH_KEYWORDS(flow_begin), NULL},
    {"flow_step", WITH_KEYWORDS(flow_step), NULL},
    {"flow_end", WITH_KEYWORDS(flow_end), NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_compiled", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__compiled(void) {
  PyObject *module = PyModule_Create(&definition), *type;
  if (!module) return NULL;
  if (!numbers) numbers = PyDict_New();
  type = PyType_FromSpec(&scope_type);
  if (!numbers || !type || PyModule_AddObject(module, "scope", type) < 0) {
    Py_XDECREF(type);
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
