"""The typed, instantiated intermediate representation: the contract between the front end and the back end.

What the front end guarantees
    Names, typedefs, generics, constants, constructor parameters and overloads are resolved and everything is type
    checked.
    Every expression carries its type; implicit casts are explicit `Cast`s; compile-time values are `Literal`s.
    Arguments are
    in parameter order. Every node carries where it was written. Declared objects (`Variable`, `Action`, `Table`, ...)
    are
    referred to directly and compared by identity; parser states are referred to by name, because they may loop.

Units and instances
    A control or parser *type*, specialised by its constructor arguments (and type arguments), is one `ControlUnit` or
    `ParserUnit`: 64 instances `Lane(0) lane0; ...` of a control without constructor parameters share one unit. A unit
    lists its sub-instances (`InstanceDecl`: local name and what it is an instance of). `Program.pipeline` holds the
    tree of *instances*: an `Instance` has its full hierarchical name (`ingress.aggregate.lane0`) and its children by
    local name, ending in `ExternInstance`s (`ingress.aggregate.lane0.sum`). A back end may emit a function per unit
    taking
    the instance's state, or inline. The full name of a table, action, extern or value set is `full_name(instance,
    cp_name)`.
    A constructor parameter of extern, control or parser type is an `InstanceDecl` with `alias=True`: the very
    `Instance`
    or `ExternInstance` object that was given appears in the children under the parameter's name.

Semantics to keep
    Evaluation is left to right; `&&`, `||`, `Mux` are lazy. `in` arguments are copied in, `out`/`inout` copied back
    when
    the callee ends (also by `exit`), in parameter order; parameters of extern type (`packet_in`) go by reference.
    What a `Declare` without initialiser, an `out` parameter at entry, or an invalid header's field holds is up to the
    target (v1model: zero; headers invalid).
    bit/int arithmetic wraps at the width of the expression's type; the operands of a `Binary` have one type, except for
    shifts (`right` is bit<w> or a non-negative literal of type int). `>>` is arithmetic when `left` is `int<w>`.
"""

from __future__ import annotations

from catchment.softswitch.compiler.annotation import Annotation, ConstantValue
from catchment.softswitch.compiler.ir.base import (
    Direction,
    Node,
    Param,
    Variable,
)
from catchment.softswitch.compiler.ir.calls import (
    ActionCall,
    ActionCase,
    ExternCall,
    FunctionCall,
    InstanceRef,
    SwitchAction,
    TableApply,
    UnitApply,
)
from catchment.softswitch.compiler.ir.expressions import (
    Aggregate,
    Binary,
    Cast,
    Concat,
    DontCare,
    EnumValue,
    Expr,
    FieldRef,
    Index,
    InvalidHeader,
    IsValid,
    Literal,
    Mux,
    PlusSlice,
    Slice,
    StackLast,
    StackLastIndex,
    StackLiteral,
    StackNext,
    Unary,
    VarRef,
)
from catchment.softswitch.compiler.ir.statements import (
    Assign,
    Block,
    Break,
    Continue,
    Declare,
    Evaluate,
    Exit,
    For,
    ForEach,
    ForRange,
    If,
    Return,
    SetValidity,
    StackShift,
    Stmt,
    SwitchValue,
    ValueCase,
    branches,
)
from catchment.softswitch.compiler.ir.tables import (
    Action,
    ActionValue,
    Entry,
    Function,
    Key,
    Match,
    MatchValueKind,
    TableAction,
    ValueSet,
)
from catchment.softswitch.compiler.ir.units import (
    ControlUnit,
    ExternInstance,
    Goto,
    Instance,
    InstanceDecl,
    ParserUnit,
    Program,
    Select,
    SelectCase,
    State,
    Table,
    full_name,
)
from catchment.softswitch.compiler.ir.walk import same, walk

__all__ = [
    "Action",
    "ActionCall",
    "ActionCase",
    "ActionValue",
    "Aggregate",
    "Annotation",
    "Assign",
    "Binary",
    "Block",
    "Break",
    "Cast",
    "Concat",
    "ConstantValue",
    "Continue",
    "ControlUnit",
    "Declare",
    "Direction",
    "DontCare",
    "Entry",
    "EnumValue",
    "Evaluate",
    "Exit",
    "Expr",
    "ExternCall",
    "ExternInstance",
    "FieldRef",
    "For",
    "ForEach",
    "ForRange",
    "Function",
    "FunctionCall",
    "Goto",
    "If",
    "Index",
    "Instance",
    "InstanceDecl",
    "InstanceRef",
    "InvalidHeader",
    "IsValid",
    "Key",
    "Literal",
    "Match",
    "MatchValueKind",
    "Mux",
    "Node",
    "Param",
    "ParserUnit",
    "PlusSlice",
    "Program",
    "Return",
    "Select",
    "SelectCase",
    "SetValidity",
    "Slice",
    "StackLast",
    "StackLastIndex",
    "StackLiteral",
    "StackNext",
    "StackShift",
    "State",
    "Stmt",
    "SwitchAction",
    "SwitchValue",
    "Table",
    "TableAction",
    "TableApply",
    "Unary",
    "UnitApply",
    "ValueCase",
    "ValueSet",
    "VarRef",
    "Variable",
    "branches",
    "full_name",
    "same",
    "walk",
]
